"""Which execution an idempotency key stands for: asking twice starts one (SRV-1)."""

from typing import Protocol

import msgspec


class KeyHolder(msgspec.Struct, frozen=True, kw_only=True):
    """Who came first with a key."""

    execution_id: str
    fingerprint: str
    """Of what was asked then; another one with the same key is the caller's mistake."""
    fresh: bool
    """Whether it was the caller: the execution id is the one that was given."""


class Keys(Protocol):
    """
    Contract, checked for every adapter by tests/contracts/test_keys.py:
    - of all that `claim` a key one is first, for good, and its claim is durable when it returns;
      every other gets the execution id and the fingerprint of the first;
    - the first may die before its execution begins: whoever finds the key held by an execution
      that does not exist may begin it under that id, and the log lets one of them do so;
    - claiming again with the same execution id says the same again;
    - `find` is the execution id of the first, or None;
    - `prune` forgets the keys claimed before a time (ms) and says how many.
    """

    async def claim(self, key: str, fingerprint: str, execution_id: str) -> KeyHolder: ...

    async def find(self, key: str) -> str | None: ...

    async def prune(self, before_ms: int) -> int: ...
