"""Do enough tokens meet at this join? (NEXT-7)"""

from typing import Any

import msgspec

from noetl.control.execution import Execution, Token
from noetl.playbook.model import Join


class Gathering(msgspec.Struct, frozen=True):
    """The tokens that fire together, what they carry, and the rounds of what follows."""

    tokens: list[Token]
    args: dict[str, Any]
    rounds: dict[str, int]


def too_late(execution: Execution, token: Token) -> bool:
    """Whether the token's round has fired without it."""
    return token.round in execution.meetings[token.step].fired


def gather(execution: Execution, join: Join, token: Token) -> Gathering | None:
    """The tokens of this token's round if they are enough, in the order of `from`."""
    waiting = execution.meetings[token.step].waiting[token.round]
    if len(waiting) < needed(join):
        return None
    order = [source for source in join.sources if source in waiting]
    tokens = [execution.tokens[waiting[source]] for source in order]
    merged: dict[str, Any] = {}
    for met in tokens:
        merged.update(met.args)
    merged["from"] = {source: met.args for source, met in zip(order, tokens, strict=True)}
    return Gathering(tokens, merged, passed(tokens, token.step))


def needed(join: Join) -> int:
    if join.mode == "all":
        return len(join.sources)
    return 1 if join.mode == "any" else join.mode


def passed(tokens: list[Token], step: str) -> dict[str, int]:
    """The rounds of a token that leaves the join: of its whole ancestry, and this one more."""
    rounds: dict[str, int] = {}
    for token in tokens:
        for join, times in token.rounds.items():
            rounds[join] = max(times, rounds.get(join, 0))
    rounds[step] = rounds.get(step, 0) + 1
    return rounds
