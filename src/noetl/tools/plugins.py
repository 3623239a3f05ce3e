"""
Tool kinds that other packages bring, by entry points of the group `noetl.tools`.

Nothing is looked for, and no foreign code is imported, before a playbook names a kind that is
not built in. A plugin that cannot be loaded is known by name with its fault, and stops no other.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import msgspec

from noetl.kinds.kind import Inputs, Kind
from noetl.kinds.table import KINDS

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from noetl.tools.tool import Tool

GROUP = "noetl.tools"


class Plugin(msgspec.Struct, frozen=True, kw_only=True):
    """
    What an entry point is, or gives when it is called: a kind, and how its tool is made. Of one
    that cannot be used `kind.fault` names the package and what is wrong.
    """

    kind: Kind
    tool: "Callable[[], Tool]"


class Plugins:
    """The plugins that are installed, each loaded when its kind is first asked for."""

    def __init__(self, installed: "Callable[[], list[EntryPoint]] | None" = None) -> None:
        self._look = installed or entry_points
        self._found: dict[str, Plugin] = {}

    def names(self) -> list[str]:
        """The kinds that plugins offer, whether they can be loaded or not."""
        return list(self._installed)

    def find(self, name: str) -> Plugin | None:
        """The plugin of a kind; None where no package offers it."""
        if name not in self._found and name in self._installed:
            self._found[name] = load(name, self._installed[name])
        return self._found.get(name)

    @cached_property
    def _installed(self) -> "dict[str, list[EntryPoint]]":
        points: dict[str, list[EntryPoint]] = {}
        for point in self._look():
            # What is built in means the same on every worker: no package replaces it.
            if point.name not in KINDS:
                points.setdefault(point.name, []).append(point)
        return points


@cache
def plugins() -> Plugins:
    """Those of this process: what is imported stays so."""
    return Plugins()


class KnownKinds(Mapping[str, Kind]):
    """The kinds that are built in, and those of plugins behind them."""

    def __init__(self, known: Plugins | None = None) -> None:
        self._plugins = known or plugins()

    def __getitem__(self, name: str) -> Kind:
        if name in KINDS:
            return KINDS[name]
        plugin = self._plugins.find(name)
        if plugin is None:
            raise KeyError(name)
        return plugin.kind

    def __iter__(self) -> Iterator[str]:
        yield from KINDS
        yield from self._plugins.names()

    def __len__(self) -> int:
        return len(KINDS) + len(self._plugins.names())


def entry_points() -> "list[EntryPoint]":
    """All that is installed. The import is slow, and most runs do without."""
    from importlib import metadata

    return list(metadata.entry_points(group=GROUP))


def load(name: str, points: "list[EntryPoint]") -> Plugin:
    """The plugin behind an entry point. Foreign code may fail in any way: it says how."""
    packages = " and ".join(sorted({package_of(point) for point in points}))
    if len(points) > 1:
        return broken(name, f"{packages} both offer the kind '{name}'; uninstall one of them")
    try:
        given: Any = points[0].load()
        plugin = given() if not isinstance(given, Plugin) and callable(given) else given
    except (Exception, SystemExit) as fault:
        return broken(name, f"{packages} cannot be loaded: {type(fault).__name__}: {fault}")
    wrong = fault_of(name, plugin)
    return plugin if wrong is None else broken(name, f"{packages} {wrong}")


def broken(name: str, why: str) -> Plugin:
    from noetl.tools.noop import NoopTool

    return Plugin(kind=Kind(name, Inputs, why, fault=why), tool=NoopTool)


def fault_of(name: str, plugin: Any) -> str | None:
    """What is wrong with what a package gave."""
    if not isinstance(plugin, Plugin):
        return f"gives a {type(plugin).__name__} for '{name}', expected noetl.tools.plugins.Plugin"
    kind = plugin.kind
    if not isinstance(kind, Kind) or kind.name != name:
        called = getattr(kind, "name", kind)
        return f"has the entry point '{name}' for the kind '{called}'; both must have one name"
    if not (isinstance(kind.inputs, type) and issubclass(kind.inputs, Inputs)):
        return f"has inputs for '{name}' that are not a subclass of noetl.kinds.kind.Inputs"
    return None if callable(plugin.tool) else f"has a tool for '{name}' that cannot be called"


def package_of(point: "EntryPoint") -> str:
    """The package that declares it, with its version."""
    if point.dist is None:
        return f"the plugin '{point.value}'"
    return f"the plugin {point.dist.name} {point.dist.version}"
