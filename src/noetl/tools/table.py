"""The table kind → tool. A tool is imported and built when a playbook first needs it."""

import importlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from noetl.extras import is_installed, needs
from noetl.kinds.table import KINDS
from noetl.tools.bounds import Bounds
from noetl.tools.plugins import Plugins, plugins

if TYPE_CHECKING:
    from noetl.tools.frame import BrokenTool
    from noetl.tools.tool import Tool

TOOLS: dict[str, str] = {
    "noop": "noetl.tools.noop:NoopTool",
    "python": "noetl.tools.python.tool:PythonTool",
    "http": "noetl.tools.http.tool:HttpTool",
    "postgres": "noetl.tools.sql.postgres:PostgresTool",
    "duckdb": "noetl.tools.sql.duck:DuckDbTool",
    "snowflake": "noetl.tools.sql.snowflake:SnowflakeTool",
    "s3": "noetl.tools.storage.s3:s3_tool",
    "gcs": "noetl.tools.storage.gcs:gcs_tool",
    "script": "noetl.tools.process.tool:ScriptTool",
    "shell": "noetl.tools.process.tool:ShellTool",
    "transform": "noetl.tools.transform.tool:TransformTool",
    "nats": "noetl.tools.nats.tool:NatsTool",
    "quantum": "noetl.tools.quantum.tool:QuantumTool",
    "container": "noetl.tools.container.tool:ContainerTool",
    "playbook": "noetl.tools.playbook:PlaybookTool",
    "secrets": "noetl.tools.secrets:SecretsTool",
}

WITH_HOME = frozenset({"python"})
"""Tools that keep something in the home folder."""
GIVEN: dict[str, tuple[str, ...]] = {
    "http": ("deny",),
    "python": ("namespaces", "private", "build"),
    "duckdb": ("namespaces", "private"),
    "quantum": ("namespaces", "private"),
    "script": ("namespaces", "private"),
    "shell": ("namespaces", "private"),
}
"""Kind → what of the bounds its tool is made with."""


def broken(why: str, block: dict[str, None] | None = None) -> "BrokenTool":
    from noetl.tools.frame import BrokenTool  # what all tools have in common comes with the first

    return BrokenTool(why, block)


class Toolbox(Mapping[str, "Tool"]):
    """The tools of one worker."""

    def __init__(
        self,
        home: Path,
        table: Mapping[str, str] = TOOLS,
        others: Plugins | None = None,
        bounds: Bounds | None = None,
    ) -> None:
        self.bounds = bounds or Bounds()
        self._home = home
        self._table = table
        self._plugins = others or plugins()
        self._built: dict[str, Tool] = {}

    def __getitem__(self, kind: str) -> "Tool":
        if kind not in self._built and kind not in self._table:
            self._built[kind] = self._plugged(kind)
        if kind not in self._built:
            module, _, name = self._table[kind].partition(":")
            try:
                factory = getattr(importlib.import_module(module), name)
            except ModuleNotFoundError:
                without = self._without_extra(kind)
                if without is None:
                    raise
                return without
            given = (self._home,) if kind in WITH_HOME else ()
            bounds = self.bounds
            kept = {name: getattr(bounds, name) for name in GIVEN.get(kind, ())}
            self._built[kind] = factory(*given, **kept)
        return self._built[kind]

    def _without_extra(self, kind: str) -> "Tool | None":
        """What stands in for a tool until its extra is installed; None: that is not the reason."""
        known = KINDS.get(kind)
        if known is None or known.extra is None or is_installed(known.extra):
            return None
        return broken(needs(f"'{kind}'", known.extra), dict.fromkeys(known.tells or ()))

    def _plugged(self, kind: str) -> "Tool":
        """The tool of a plugin. What it fails to make fails the calls, and nothing else."""
        plugin = self._plugins.find(kind)
        if plugin is None:
            raise KeyError(kind)
        why = plugin.kind.fault
        try:
            if why is None:
                return plugin.tool()
        except Exception as fault:
            why = f"its tool cannot be made: {type(fault).__name__}: {fault}"
        return broken(f"the tool kind '{kind}' cannot be used: {why}")

    def __iter__(self) -> Iterator[str]:
        return iter(self._table)

    def __len__(self) -> int:
        return len(self._table)

    @property
    def built(self) -> "list[Tool]":
        """The tools that were needed so far."""
        return list(self._built.values())
