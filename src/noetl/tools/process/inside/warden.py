"""
The process between a worker and a command: it confines the command and tells how it ended.

It is started with `-I -S` and uses the standard library alone. What it shall run comes through a
descriptor, so that nothing of it stands on a command line. On the status pipe it writes one line:
`exec <errno>`, `network 0` or `namespaces 0` for what must hold and cannot, or `exit <code>` /
`signal <number>` with 1 behind it where processes of the command are still alive; `free 0` stands
before it where the kernel allows no namespaces and has no Landlock. The worker's side is
`tools/process/running.py`.
"""

from __future__ import annotations

import marshal
import os
import resource

from .landlock import shield, version
from .limits import LIMITS, has_children, limit
from .namespaces import (
    NEW_MOUNTS,
    NEW_NETWORK,
    NEW_PIDS,
    NEW_USER,
    allowed,
    bind_to,
    enter,
    fork_bound,
    let_go,
    mount_own,
    seal_program,
)

TYPE_CHECKING = False  # `typing` takes longer to load than all the rest
if TYPE_CHECKING:
    import signal
    from typing import Any
else:
    import _signal as signal  # without the names that `enum` gives to its numbers

STREAMS = (0, 1, 2)
IGNORED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
"""What is sent to the group is meant for the command."""


def serve(orders: int, status: int, worker: int) -> None:
    """Run what the orders say, to its end."""
    bind_to(worker)
    with open(orders, "rb") as source:
        order: dict[str, Any] = marshal.loads(source.read())
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    os.set_inheritable(status, False)
    flags, order["landlock"] = namespaces_of(order), False
    reach = (order["private"], order["shown"])
    if flags and not allowed(flags, *reach, writes=order["writes"]):
        refused, landlock = None if order["network"] else "network", version() > 0
        if order["namespaces"] == "demand" and not landlock:
            refused = refused or "namespaces"
        if refused:  # what must hold and cannot is no reason to run anyway
            tell(status, f"{refused} 0")
            return
        if landlock:
            order["landlock"] = True
        else:
            tell(status, "free 0")
        flags = 0
    if not flags:
        oversee(order, status)
        return
    enter(flags)
    first = fork_bound()
    if first == 0:  # number 1 of its namespace: with its end all processes in there end
        mount_own(*reach, writes=order["writes"])
        seal_program()
        oversee(order, status)
    let_go(STREAMS)
    os.waitpid(first, 0)


def namespaces_of(order: dict[str, Any]) -> int:
    """Another user namespace would take rights from root; others need one for the rest."""
    flags = NEW_PIDS | NEW_MOUNTS if order["namespaces"] != "off" else 0
    if not order["network"]:
        flags |= NEW_PIDS | NEW_MOUNTS | NEW_NETWORK
    return flags | NEW_USER if flags and os.geteuid() else flags


def oversee(order: dict[str, Any], status: int) -> None:
    """Run the command, wait for it and for whatever it leaves behind, and leave."""
    command = fork_bound()
    if command == 0:
        become(order, status)
    let_go(STREAMS)
    ended = None
    while ended is None:
        pid, state = os.wait()
        ended = state if pid == command else None
    code = os.waitstatus_to_exitcode(ended)
    word = f"exit {code}" if code >= 0 else f"signal {-code}"
    left = os.getpid() != 1 and has_children()
    tell(status, f"{word} {int(left)}")
    while left:  # adopted ones: the worker sees them below us, and ends them
        os.wait()
        left = has_children()
    os._exit(0)


def become(order: dict[str, Any], status: int) -> None:
    """Turn this fresh process into the command."""
    try:
        for number in (*IGNORED, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        if order["cpus"]:
            os.sched_setaffinity(0, order["cpus"])
        os.umask(0o077)
        for name, most in LIMITS.items():
            limit(name, most)
        limit(resource.RLIMIT_CPU, order["cpu_seconds"])
        if order["memory"]:
            limit(resource.RLIMIT_AS, order["memory"])
        if order["landlock"]:
            shield(order["private"], order["shown"], writes=order["writes"])
        os.execve(order["words"][0], order["words"], order["environment"])
    except OSError as fault:
        tell(status, f"exec {fault.errno}")
    finally:
        os._exit(127)


def tell(status: int, line: str) -> None:
    os.write(status, f"{line}\n".encode())
