"""Claims that starts bring with the commit that begins them, as columns of that statement."""

import hashlib
from collections.abc import Mapping
from typing import Any, Final

from noetl.adapters.batching import DecisionChain
from noetl.adapters.postgres.columns import storable, transposed
from noetl.ports.limits import LimitClaim

LONGEST_GROUP: Final = 400
"""Bytes; a key has 500 characters at most, and a row of an index 2,704 bytes."""
WANT, BROUGHT, TAKEN = 5, 2, 6
"""How many columns: what is wanted of each limit, who brings a claim, which claims are kept."""


def named(group: str) -> str:
    """
    What is limited, as an index can hold it beside the longest key. All claims of a moment are one
    statement: one that the database cannot keep would fail those of everybody.
    """
    text: str = storable(group)
    if len(text.encode()) <= LONGEST_GROUP:
        return text
    return f"{text[:50]}…{hashlib.sha256(group.encode(errors='replace')).hexdigest()}"


def claim_columns(chains: Mapping[str, DecisionChain]) -> list[Any]:
    """What is wanted of each limit and key in all, and the claims themselves."""
    brought = [(chain.claim, chain.passes) for chain in chains.values() if chain.claim is not None]
    if not brought:
        return [()] * (WANT + BROUGHT + TAKEN)
    wanted: dict[tuple[str, str], list[LimitClaim]] = {}
    holders, taken = [], []
    for claim, passes in brought:
        name = (named(claim.group), storable(claim.key))
        wanted.setdefault(name, []).append(claim)
        holders.append((claim.execution_id, name[0]))
        if not passes:
            numbers = (claim.at_once, claim.total, claim.priority)
            taken.append((claim.execution_id, *name, *numbers))
    wants = [(*name, *want_of(claims)) for name, claims in wanted.items()]
    return [*transposed(wants, WANT), *transposed(holders, BROUGHT), *transposed(taken, TAKEN)]


def want_of(claims: list[LimitClaim]) -> tuple[int, int | None, int | None]:
    """How many, and the narrowest numbers among them: versions of a playbook may differ."""
    at_once = min((one.at_once for one in claims if one.at_once is not None), default=None)
    total = min((one.total for one in claims if one.total is not None), default=None)
    return len(claims), at_once, total
