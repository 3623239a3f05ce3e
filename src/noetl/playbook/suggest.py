"""Names in hints: the one that was meant, or some of those that there are."""

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Final

from noetl.expression.meant import closest
from noetl.late import late

_MEANT = late(r"did you mean '(.+)'\?$")
SHOWN_NAMES = 12


SYNONYMS: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("items", "over", "for_each", "foreach", "collection"), ("in",)),
    **dict.fromkeys(("item", "as", "var", "element"), ("iterator",)),
    **dict.fromkeys(("cmd", "run", "statement"), ("command",)),
    **dict.fromkeys(("inputs", "input", "with", "parameters"), ("args", "params")),
    **dict.fromkeys(("data", "json", "payload", "content"), ("body", "args")),
    **dict.fromkeys(("uri", "endpoint", "address", "link"), ("url",)),
    **dict.fromkeys(("credential", "credentials", "connection", "secret"), ("auth", "credential")),
    **dict.fromkeys(("if", "condition", "unless"), ("when",)),
    **dict.fromkeys(("to", "target", "goto", "then"), ("step",)),
    **dict.fromkeys(("environment", "vars", "variables"), ("env",)),
    **dict.fromkeys(("script", "source", "python"), ("code",)),
    **dict.fromkeys(("requirements", "packages", "dependencies"), ("libs",)),
    **dict.fromkeys(("concurrency", "parallelism", "workers"), ("max_in_flight",)),
    **dict.fromkeys(("max_attempts", "retries", "times"), ("attempts",)),
    **dict.fromkeys(("wait", "sleep", "interval"), ("delay", "seconds", "every", "wait")),
    **dict.fromkeys(("bash", "sh", "exec", "BashOperator"), ("shell",)),
    **dict.fromkeys(("PythonOperator", "py", "function", "lambda"), ("python",)),
    **dict.fromkeys(("sqlite", "sql", "parquet", "csv"), ("duckdb", "command")),
    **dict.fromkeys(("docker", "podman", "kubernetes", "DockerOperator"), ("container",)),
    **dict.fromkeys(("postgresql", "pg", "psql", "redshift"), ("postgres",)),
    **dict.fromkeys(("sensor", "approval", "pause"), ("wait",)),
    **dict.fromkeys(("subflow", "subworkflow", "child", "call"), ("playbook",)),
    **dict.fromkeys(("rest", "api", "request", "https", "webhook"), ("http",)),
    **dict.fromkeys(("text", "str", "varchar"), ("string",)),
    **dict.fromkeys(("int", "long"), ("integer",)),
    **dict.fromkeys(("float", "double", "decimal"), ("number",)),
    "bool": ("boolean",),
    "verb": ("method",),
    "file": ("path",),
    "tz": ("timezone",),
    "description": ("desc",),
}
"""Words of other tools for what has another name here."""


def did_you_mean(name: str, known: Iterable[str], otherwise: str) -> str:
    """The hint for an unknown name."""
    names = dict.fromkeys(known)
    same = (word for word in SYNONYMS.get(name, ()) if word in names)
    near = closest(name, names) or next(same, None)
    return f"did you mean '{near}'?" if near else otherwise


def suggested(hint: str) -> str | None:
    """The name that a hint suggests; an editor puts it in place of the wrong one."""
    meant = _MEANT.search(hint)
    return None if meant is None else meant[1]


def some(names: Iterable[str]) -> str:
    """The first few names, for a hint."""
    shown = list(islice(names, SHOWN_NAMES + 1))
    return ", ".join([*shown[:SHOWN_NAMES], "…"] if len(shown) > SHOWN_NAMES else shown)


def listed(names: Iterable[str]) -> str:
    """Names as a person lists them: a, b or c."""
    shown = list(names)
    return " or ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)
