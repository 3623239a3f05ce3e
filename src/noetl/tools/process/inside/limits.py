"""What a process may use, and whether it has children: for all that is started without NoETL."""

# By name, since code of a playbook may replace what these modules hold.
import resource
from os import P_ALL, WEXITED, WNOHANG, WNOWAIT, waitid

LIMITS = {
    resource.RLIMIT_CORE: 0,
    resource.RLIMIT_NOFILE: 1_024,
    resource.RLIMIT_NPROC: 8_192,
}
"""Of every process that runs what a playbook brings along."""


def limit(name: int, most: int) -> None:
    hard = resource.getrlimit(name)[1]
    least = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(name, (least, least))


def address_space() -> int:
    """Bytes that the process itself takes; a limit is for what is added."""
    with open("/proc/self/statm", "rb") as counts:
        return int(counts.read().split()[0]) * resource.getpagesize()


def has_children() -> bool:
    """Any at all: one that adopts orphans sees what its own children left behind."""
    try:
        waitid(P_ALL, 0, WEXITED | WNOHANG | WNOWAIT)
    except ChildProcessError:
        return False
    return True
