"""What whoever runs a worker lets its tools do: which files they reach, how children are kept."""

from typing import Literal

import msgspec

Denied = Literal["link_local", "private", "none"]
"""Addresses that http tasks do not reach; each includes the one before."""
Namespaces = Literal["auto", "demand", "off"]
"""Of children: where the kernel allows them, or not at all without them, or none."""
DEMANDED = (
    "the worker's setting namespaces is demand, but its kernel allows none and has no Landlock;"
    " allow user namespaces, or set it to auto"
)
WITHOUT = (
    "the kernel of this worker allows no namespaces and has no Landlock: what this task runs sees"
    " the other processes of the machine, and files of NoETL (docs/operate/trust-model.md)"
)
"""Told once by each tool, in the log of the first task that it holds for."""
CPU_SECONDS = 86_400
"""Processor time of a child whose task sets no timeout: nothing runs for ever unseen."""


class Bounds(msgspec.Struct, frozen=True):
    """The worker's settings that concern tools."""

    files: str | None = None
    """The folder below which files are reached; None: see docs/operate/trust-model.md."""
    private: tuple[str, ...] = ()
    """NoETL's own files and folders: no path of a playbook leads there, no child sees them."""
    namespaces: Namespaces = "auto"
    deny: Denied = "link_local"
    build: bool = False
    """Whether `libs` may be built from source, which runs code of theirs."""


def cpu_seconds(total: float | None, processors: int) -> int:
    """
    A net below the timeout, which counts time and not work: it holds where the worker that should
    end a child is gone or stopped. A child may use all processors for the time that it has.
    """
    return CPU_SECONDS if total is None else int(total * processors) + 2
