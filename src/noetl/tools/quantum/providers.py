"""Which providers are there? `aer`, and those of installed packages (group `noetl.quantum`)."""

from collections.abc import Callable, Mapping
from importlib.metadata import entry_points

from noetl.tools.quantum.aer import AerProvider
from noetl.tools.quantum.provider import Provider
from noetl.tools.refusal import Refusal

GROUP = "noetl.quantum"
BUILT_IN: Mapping[str, Callable[[], Provider]] = {"aer": AerProvider}


class Providers:
    """Each is made when it is first asked for, and kept."""

    def __init__(self, table: Mapping[str, Callable[[], Provider]] = BUILT_IN) -> None:
        self._table = table
        self._made: dict[str, Provider] = {}

    def find(self, name: str) -> Provider:
        """Raises Refusal where there is none, or it cannot be made."""
        if name not in self._made:
            self._made[name] = self._make(name)
        return self._made[name]

    async def close(self) -> None:
        made = list(self._made.values())
        self._made.clear()
        for provider in made:
            await provider.close()

    def _make(self, name: str) -> Provider:
        if name in self._table:
            return self._table[name]()
        found = entry_points(group=GROUP)
        if name not in found.names:
            known = ", ".join(sorted({*self._table, *found.names}))
            says = f"no quantum provider '{name}'; there is {known}"
            raise Refusal("not_found", f"{says}. Others are packages with an entry point {GROUP}")
        try:
            provider: Provider = found[name].load()()
        except Exception as fault:
            says = f"the quantum provider '{name}' cannot be used: {type(fault).__name__}: {fault}"
            raise Refusal("not_found", says) from None
        return provider
