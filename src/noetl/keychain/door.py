"""The way to the keychain, which is built when it is first used: most runs need none."""

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from noetl.playbook.plan import Plan
from noetl.tools.bounds import Bounds

if TYPE_CHECKING:
    from noetl.keychain.keychain import Keychain
    from noetl.keychain.seals import Seals
    from noetl.ports.credentials import Credentials


class KeychainDoor:
    """Stands for a Keychain; ciphers and HTTP clients are imported with the first credential."""

    def __init__(
        self,
        credentials: "Callable[[], Credentials]",
        home: Path | None,
        key: bytes | None,
        *,
        lenient: bool = False,
        bounds: Bounds | None = None,
    ) -> None:
        self._bounds = bounds
        self._credentials = credentials
        self._lenient = lenient
        self._home = home
        self._key = key

    @cached_property
    def opened(self) -> "Keychain":
        from noetl.keychain.keychain import Keychain
        from noetl.keychain.keys import KeySource
        from noetl.keychain.store import Store

        keys = KeySource(self._home, given=self._key)
        store = Store(self._credentials(), keys, lenient=self._lenient)
        return Keychain(store, bounds=self._bounds)

    async def unlock(self, plan: Plan, name: str) -> dict[str, Any]:
        return await self.opened.unlock(plan, name)

    async def secret(self, plan: Plan, provider: str, name: str, auth: str | None) -> Any:
        return await self.opened.secret(plan, provider, name, auth)

    @property
    def seals(self) -> "Seals":
        return self.opened.seals

    async def close(self) -> None:
        if "opened" in self.__dict__:
            await self.opened.close()
