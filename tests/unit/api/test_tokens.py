"""Tokens and roles: what is made, what is good, what opens what."""

import hashlib
from typing import get_args

import msgspec
import pytest

from noetl.api.roles import INCLUDES, Access, allows
from noetl.api.tokens import PREFIX, new_token
from noetl.api.types import Role
from noetl.errors import ServerRefused
from noetl.ports.tokens import digest_of, is_good


def test_a_token_is_long_and_only_its_digest_is_kept() -> None:
    text, row = new_token("ci", "operator", now_ms=5, expires_at=9)
    assert text.startswith(PREFIX)
    assert len(text) >= len(PREFIX) + 43, "256 bits"
    assert row.digest == hashlib.sha256(text.encode()).hexdigest()
    assert text.removeprefix(PREFIX) not in repr(row)
    assert (row.name, row.role, row.created_at, row.expires_at) == ("ci", "operator", 5, 9)
    assert (row.revoked_at, new_token("ci", "operator", now_ms=5)[0] == text) == (None, False)


@pytest.mark.parametrize(
    ("changes", "now", "good"),
    [
        ({}, 100, True),
        ({"expires_at": 101}, 100, True),
        ({"expires_at": 100}, 100, False),
        ({"revoked_at": 1}, 100, False),
        ({"revoked_at": 200}, 100, False),
        ({"digest": "0" * 64}, 100, False),
    ],
)
def test_whether_a_token_is_good(changes: dict[str, object], now: int, good: bool) -> None:
    text, row = new_token("ci", "viewer", now_ms=1)
    row = msgspec.structs.replace(row, **changes)
    assert is_good(row, digest_of(text), now) is good


def test_a_token_that_nobody_made_is_not_good() -> None:
    assert not is_good(None, digest_of("noetl_x"), 1)


def test_every_role_is_in_the_table() -> None:
    assert set(INCLUDES) == set(get_args(Role))


@pytest.mark.parametrize(
    ("role", "opened"),
    [
        ("viewer", {"viewer"}),
        ("approver", {"viewer", "approver"}),
        ("operator", {"viewer", "approver", "operator"}),
        ("author", {"viewer", "approver", "operator", "author"}),
        ("admin", {"viewer", "approver", "operator", "author", "admin"}),
        ("worker", {"worker"}),
        ("root", set()),
        ("", set()),
        ("open", set()),
    ],
)
def test_what_a_role_opens(role: str, opened: set[Access]) -> None:
    accesses: list[Access] = [*get_args(Role), "open"]
    assert {access for access in accesses if allows(role, access)} == opened


@pytest.mark.rule("WRK-2")
def test_a_token_of_workers_is_of_one_pool() -> None:
    _, usual = new_token("w", "worker", now_ms=1)
    _, gpu = new_token("w", "worker", now_ms=1, pool="gpu")
    assert (usual.role, gpu.role) == ("worker@default", "worker@gpu")
    assert allows(gpu.role, "worker")
    assert not allows(gpu.role, "viewer")
    assert "worker@gpu" not in INCLUDES, "an older server lets it in nowhere"


@pytest.mark.parametrize("pool", ["", "a@b", "a b", "../x", "x" * 64])
def test_a_pool_is_a_name(pool: str) -> None:
    with pytest.raises(ServerRefused, match="not a valid pool name"):
        new_token("w", "worker", now_ms=1, pool=pool)


def test_only_workers_have_a_pool() -> None:
    with pytest.raises(ServerRefused, match="goes with role worker"):
        new_token("w", "admin", now_ms=1, pool="gpu")
