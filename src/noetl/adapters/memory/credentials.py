"""Registered credentials in memory, for simulations and tests."""

from collections.abc import Callable, Sequence

from noetl.ports.credentials import SealedCredential


class MemoryCredentials:
    """Credentials; see its contract."""

    def __init__(self) -> None:
        self._kept: dict[str, SealedCredential] = {}

    async def keep(self, credential: SealedCredential) -> None:
        self._kept[credential.name] = credential

    async def find(self, name: str) -> SealedCredential | None:
        return self._kept.get(name)

    async def all(self) -> Sequence[SealedCredential]:
        return [self._kept[name] for name in sorted(self._kept)]

    async def remove(self, name: str) -> bool:
        return self._kept.pop(name, None) is not None

    async def rewrite(self, change: Callable[[SealedCredential], SealedCredential]) -> int:
        changed = {name: change(credential) for name, credential in self._kept.items()}
        self._kept = changed
        return len(changed)
