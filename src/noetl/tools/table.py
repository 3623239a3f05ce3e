"""The table kind → tool. A tool is imported and built when a playbook first needs it."""

import importlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from noetl.tools.tool import Tool

TOOLS: dict[str, str] = {
    "noop": "noetl.tools.noop:NoopTool",
    "python": "noetl.tools.python.tool:PythonTool",
    "http": "noetl.tools.http.tool:HttpTool",
    "postgres": "noetl.tools.sql.postgres:PostgresTool",
    "duckdb": "noetl.tools.sql.duck:DuckDbTool",
    "script": "noetl.tools.process.tool:ScriptTool",
    "shell": "noetl.tools.process.tool:ShellTool",
    "transform": "noetl.tools.transform.tool:TransformTool",
    "playbook": "noetl.tools.playbook:PlaybookTool",
    "secrets": "noetl.tools.secrets:SecretsTool",
}

WITH_HOME = frozenset({"python"})
"""Tools that keep something in the home folder."""


class Toolbox(Mapping[str, Tool]):
    """The tools of one worker."""

    def __init__(self, home: Path, table: Mapping[str, str] = TOOLS) -> None:
        self._home = home
        self._table = table
        self._built: dict[str, Tool] = {}

    def __getitem__(self, kind: str) -> Tool:
        if kind not in self._built:
            module, _, name = self._table[kind].partition(":")
            factory = getattr(importlib.import_module(module), name)
            self._built[kind] = factory(self._home) if kind in WITH_HOME else factory()
        return self._built[kind]

    def __iter__(self) -> Iterator[str]:
        return iter(self._table)

    def __len__(self) -> int:
        return len(self._table)

    @property
    def built(self) -> list[Tool]:
        """The tools that were needed so far."""
        return list(self._built.values())
