"""Which tool kinds are there? The one table that validation, schema and runtime read (TOOL)."""

from collections.abc import Iterator, Mapping
from importlib import import_module

from noetl.kinds.kind import Kind

_HOMES = {
    "http": "noetl.kinds.http",
    **dict.fromkeys(("postgres", "duckdb", "snowflake"), "noetl.kinds.sql"),
    **dict.fromkeys(("python", "script", "shell", "container"), "noetl.kinds.code"),
    **dict.fromkeys(
        ("playbook", "workbook", "iterator", "noop", "transform", "wait"), "noetl.kinds.flow"
    ),
    "secrets": "noetl.kinds.secrets",
    **dict.fromkeys(("gcs", "s3"), "noetl.kinds.storage"),
    "nats": "noetl.kinds.messaging",
    "quantum": "noetl.kinds.quantum",
}
"""Kind → the module of its family; in the order in which the documentation shows them."""


class KindTable(Mapping[str, Kind]):
    """Every kind by its name; a family is imported when one of its kinds is first asked for."""

    def __init__(self) -> None:
        self._known: dict[str, Kind] = {}

    def __getitem__(self, name: str) -> Kind:
        if name not in self._known:
            family = import_module(_HOMES[name])
            self._known[name] = getattr(family, name.upper())
        return self._known[name]

    def __contains__(self, name: object) -> bool:
        return name in _HOMES

    def __iter__(self) -> Iterator[str]:
        return iter(_HOMES)

    def __len__(self) -> int:
        return len(_HOMES)


KINDS: Mapping[str, Kind] = KindTable()
