"""
The process between a worker and a command: it confines the command and tells how it ended.

It is started with `-I -S` and uses the standard library alone. What it shall run comes through a
descriptor, so that nothing of it stands on a command line. On the status pipe it writes one line:
`exec <errno>`, `network 0`, or `exit <code>` / `signal <number>` with 1 behind it where processes
of the command are still alive. The worker's side is `tools/process/running.py`.
"""

import ctypes
import marshal
import os
import resource
import signal
from typing import Any

PARENT_DEATH_SIGNAL, SUBREAPER = 1, 36
"""Of prctl(2)."""
NEW_MOUNTS, NEW_USER, NEW_PIDS, NEW_NETWORK = 0x20000, 0x10000000, 0x20000000, 0x40000000
"""Of unshare(2)."""
PRIVATE = 0x4000 | 0x40000
"""Of mount(2): MS_REC and MS_PRIVATE."""
PLAIN = 0x2 | 0x4 | 0x8
"""Of mount(2): MS_NOSUID, MS_NODEV and MS_NOEXEC."""
IGNORED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
"""What is sent to the group is meant for the command."""
LIMITS = {
    resource.RLIMIT_CORE: 0,
    resource.RLIMIT_NOFILE: 1_024,
    resource.RLIMIT_NPROC: 8_192,
}

libc = ctypes.CDLL(None, use_errno=True)


def serve(orders: int, status: int, worker: int) -> None:
    """Run what the orders say, to its end."""
    bind_to(worker)
    with open(orders, "rb") as source:
        order: dict[str, Any] = marshal.loads(source.read())
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    os.set_inheritable(status, False)
    flags = namespaces_of(order)
    if flags and not allowed(flags):
        if not order["network"]:  # what must hold and cannot is no reason to run anyway
            tell(status, "network 0")
            return
        flags = 0
    if not flags:
        oversee(order, status)
        return
    enter(flags)
    first = os.fork()
    if first == 0:  # number 1 of its namespace: with its end all processes in there end
        libc.prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL)
        mount_proc()
        oversee(order, status)
    let_go()
    os.waitpid(first, 0)


def namespaces_of(order: dict[str, Any]) -> int:
    """Another user namespace would take rights from root; others need one for the rest."""
    flags = NEW_PIDS | NEW_MOUNTS if order["namespaces"] else 0
    if not order["network"]:
        flags |= NEW_PIDS | NEW_MOUNTS | NEW_NETWORK
    return flags | NEW_USER if flags and os.geteuid() else flags


def allowed(flags: int) -> bool:
    """Tried by a process that is thrown away: a half-made namespace cannot be left again."""
    trial = os.fork()
    if trial == 0:
        try:
            enter(flags)
            inner = os.fork()
            if inner == 0:
                mount_proc()
                os._exit(0)
            os._exit(1 if os.waitpid(inner, 0)[1] else 0)
        except OSError:
            os._exit(1)
    return os.waitpid(trial, 0)[1] == 0


def enter(flags: int) -> None:
    """Make namespaces; in one of users everybody keeps the number that he has."""
    uid, gid = os.geteuid(), os.getegid()
    checked(libc.unshare(flags))
    if flags & NEW_USER:
        for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1")):
            write_to(f"/proc/self/{name}", text)
        write_to("/proc/self/gid_map", f"{gid} {gid} 1")


def mount_proc() -> None:
    """A view of processes that fits the new numbers."""
    checked(libc.mount(b"none", b"/", None, PRIVATE, None))
    checked(libc.mount(b"proc", b"/proc", b"proc", PLAIN, None))


def oversee(order: dict[str, Any], status: int) -> None:
    """Run the command, wait for it and for whatever it leaves behind, and leave."""
    command = os.fork()
    if command == 0:
        become(order, status)
    let_go()
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
        libc.prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL)
        for number in (*IGNORED, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        if order["cpus"]:
            os.sched_setaffinity(0, order["cpus"])
        os.umask(0o077)
        for name, most in LIMITS.items():
            limit(name, most)
        if order["memory"]:
            limit(resource.RLIMIT_AS, order["memory"])
        os.execve(order["words"][0], order["words"], order["environment"])
    except OSError as fault:
        tell(status, f"exec {fault.errno}")
    finally:
        os._exit(127)


def bind_to(worker: int) -> None:
    """Die with the worker, and adopt the orphans of the command, so that they are seen."""
    libc.prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL)
    libc.prctl(SUBREAPER, 1)
    if os.getppid() != worker:  # it ended before the first line
        os._exit(0)


def let_go() -> None:
    """The ends of the streams belong to the command alone: their end is the end of its output."""
    for descriptor in (0, 1, 2):
        os.close(descriptor)


def has_children() -> bool:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def limit(name: int, most: int) -> None:
    hard = resource.getrlimit(name)[1]
    least = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(name, (least, least))


def tell(status: int, line: str) -> None:
    os.write(status, f"{line}\n".encode())


def write_to(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


def checked(answer: int) -> None:
    if answer != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
