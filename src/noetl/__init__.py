"""
NoETL: declarative playbooks, routed as tokens, run as pipelines, kept in a log.

`noetl.run("playbook.yaml")` runs one in this process, `noetl.Client` asks a server: see
docs/reference/python.md. Each name is imported when it is first used.
"""

TYPE_CHECKING = False  # `typing` itself costs milliseconds
if TYPE_CHECKING:
    from noetl.client.async_client import AsyncClient
    from noetl.client.client import Client
    from noetl.errors import ExecutionFailed, NoetlError, PlaybookRejected
    from noetl.in_process import RunFailure, RunResult, run, run_async

__version__ = "0.1.0"

__all__ = [
    "AsyncClient",
    "Client",
    "ExecutionFailed",
    "NoetlError",
    "PlaybookRejected",
    "RunFailure",
    "RunResult",
    "__version__",
    "run",
    "run_async",
]

_HOMES = {
    "AsyncClient": "noetl.client.async_client",
    "Client": "noetl.client.client",
    "ExecutionFailed": "noetl.errors",
    "NoetlError": "noetl.errors",
    "PlaybookRejected": "noetl.errors",
    "RunFailure": "noetl.in_process",
    "RunResult": "noetl.in_process",
    "run": "noetl.in_process",
    "run_async": "noetl.in_process",
}


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module 'noetl' has no attribute '{name}'")
        from importlib import import_module

        value = globals()[name] = getattr(import_module(_HOMES[name]), name)
        return value


def __dir__() -> list[str]:
    return __all__
