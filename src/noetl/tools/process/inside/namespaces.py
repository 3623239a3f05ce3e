"""
How a process gets numbers of processes and mounts of its own, where the kernel allows it.

It is loaded by all programs of this folder, which run without NoETL. It
imports as little as can be: what is loaded before a fork is copied behind it, page by page.
"""

import ctypes
import os

from .program_files import program_folders

PARENT_DEATH_SIGNAL, SUBREAPER = 1, 36
"""Of prctl(2)."""
KILL, DEFAULT = 9, 0
"""Of signal(2): SIGKILL and SIG_DFL."""
NEW_MOUNTS, NEW_USER, NEW_PIDS, NEW_NETWORK = 0x20000, 0x10000000, 0x20000000, 0x40000000
"""Of unshare(2)."""
PRIVATE = 0x4000 | 0x40000
"""Of mount(2): MS_REC and MS_PRIVATE."""
PLAIN = 0x2 | 0x4 | 0x8
"""Of mount(2): MS_NOSUID, MS_NODEV and MS_NOEXEC."""
BIND = 0x1000 | 0x4000
"""Of mount(2): MS_BIND and MS_REC."""
SEALED, KEPT, RELATIVE_TIME = 0x1 | 0x20 | 0x1000, 0x2 | 0x4 | 0x8 | 0x400 | 0x800, 0x200000
"""
Of mount(2): MS_RDONLY, MS_REMOUNT and MS_BIND; what a mount may have already, which statvfs(3)
tells by the same numbers (MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_NOATIME, MS_NODIRATIME), and
MS_RELATIME, which it does not.
"""
PATH_ONLY = 0o10000000
"""Of open(2): O_PATH."""
CAPABILITIES = 0x20080522
"""Of capset(2): its version 3."""
POLLIN = 1
"""Of poll(2)."""
UNCONFINED = 97
"""Exit code of a child that was to have namespaces and got none."""

libc = ctypes.CDLL(None, use_errno=True)


def confine(
    mode: str,
    worker: int,
    ends: tuple[int, ...],
    private: list[str],
    shown: list[str],
    *,
    writes: bool = False,
) -> int:
    """
    Go on in namespaces of one's own; returns the number that the parent has from here.

    `mode` is `demand`, `auto` (where the kernel allows none, Landlock does; where it has none, go
    on without), `known` (it does), `landlock` (that it has) or `off`. What is `private` is hidden,
    but for what of it is `shown`, to be read or, with `writes`, to be written. The process that was
    started stays outside and ends as this one does. Number 1 in there is a process that waits: with
    it all others end, and the one that goes on has a number that signals reach. It has nobody to
    bury: orphans are adopted by the one that goes on.
    """
    flags = flags_here()
    if mode == "off":
        return worker
    if mode == "landlock" or (
        mode != "known" and not allowed(flags, private, shown, writes=writes)
    ):
        from .landlock import shield

        try:
            shield(private, shown, writes=writes)
        except OSError:
            if mode != "auto":
                os._exit(UNCONFINED)
        return worker
    bind_to(worker, adopt=False)
    enter(flags)
    ready, done = os.pipe()
    if fork_bound() == 0:
        mount_own(private, shown, writes=writes)
        seal_program()
        os.write(done, b".")
        let_go((*ends, ready, done))
        while True:
            libc.pause()
    os.close(done)
    if not os.read(ready, 1):  # it ended before all was hidden and sealed
        os._exit(UNCONFINED)
    os.close(ready)
    inner = fork_bound()
    if inner:
        follow(inner, ends)
    if flags & NEW_USER:
        drop_capabilities()
    return 0


def flags_here() -> int:
    """Another user namespace would take rights from root; others need one for the rest."""
    return NEW_PIDS | NEW_MOUNTS | (NEW_USER if os.geteuid() else 0)


def bind_to(parent: int, *, adopt: bool = True) -> None:
    """Die with the parent, and adopt the orphans of own children, so that they are seen."""
    libc.prctl(PARENT_DEATH_SIGNAL, KILL)
    if adopt:
        libc.prctl(SUBREAPER, 1)
    if os.getppid() != parent:  # it ended before the first line
        os._exit(0)


def fork_bound() -> int:
    """
    Fork a process that ends with this one, also where this one is killed before the new one can ask
    for the signal. Its number tells nothing in a namespace of its own; a descriptor does.
    """
    try:
        parent = os.pidfd_open(os.getpid())
    except OSError:  # an old kernel
        parent = -1
    pid = os.fork()
    if pid == 0:
        libc.prctl(PARENT_DEATH_SIGNAL, KILL)
        readable = (ctypes.c_int * 2)(parent, POLLIN)  # of poll(2): nothing is imported for it
        if parent >= 0 and libc.poll(readable, 1, 0) > 0:
            os._exit(0)
    if parent >= 0:
        os.close(parent)
    return pid


def follow(inner: int, ends: tuple[int, ...]) -> None:
    """End as the inner process ends."""
    let_go(ends)
    code = os.waitstatus_to_exitcode(os.waitpid(inner, 0)[1])
    if code < 0:
        libc.signal(-code, DEFAULT)
        os.kill(os.getpid(), -code)
    os._exit(code)


def let_go(ends: tuple[int, ...]) -> None:
    """The ends of streams belong to one process alone: their end is the end of its output."""
    for descriptor in ends:
        os.close(descriptor)


def allowed(flags: int, private: list[str], shown: list[str], *, writes: bool = False) -> bool:
    """Tried by a process that is thrown away: a half-made namespace cannot be left again."""
    trial = os.fork()
    if trial == 0:
        try:
            enter(flags)
            inner = os.fork()
            if inner == 0:
                mount_own(private, shown, writes=writes)
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


def mount_own(private: list[str], shown: list[str], *, writes: bool = False) -> None:
    """
    A view of processes that fits the new numbers, and nothing where private files lie. What of
    them is shown can be read, and written only by who `writes` there.
    """
    checked(libc.mount(b"none", b"/", None, PRIVATE, None))
    checked(libc.mount(b"proc", b"/proc", b"proc", PLAIN, None))
    kept = [(path, os.open(path, PATH_ONLY)) for path in shown if os.path.isdir(path)]
    for path in private:
        if os.path.isdir(path):
            checked(libc.mount(b"none", os.fsencode(path), b"tmpfs", PLAIN, b"mode=0711,size=64k"))
        elif os.path.exists(path):
            checked(libc.mount(b"/dev/null", os.fsencode(path), None, BIND, None))
    for path, opened in kept:
        os.makedirs(path, exist_ok=True)
        source = f"/proc/self/fd/{opened}".encode()
        checked(libc.mount(source, os.fsencode(path), None, BIND, None))
        os.close(opened)
        if not writes:
            seal(path)
    keep_names(private)


def seal_program() -> None:
    """The program's own files can be read, and not be changed (decision 0090)."""
    program = program_folders()
    keep_names(program)
    for folder in program:
        checked(libc.mount(os.fsencode(folder), os.fsencode(folder), None, BIND, None))
        seal(folder)


def keep_names(paths: list[str]) -> None:
    """Folders above them that could be renamed become mounts, which cannot."""
    for folder in sorted({above for path in paths for above in movable(path)}):
        checked(libc.mount(os.fsencode(folder), os.fsencode(folder), None, BIND, None))


def seal(path: str) -> None:
    """What is mounted here can be read, and not be written."""
    has = os.statvfs(path).f_flag
    flags = SEALED | has & KEPT | (RELATIVE_TIME if has & 0x1000 else 0)
    checked(libc.mount(None, os.fsencode(path), None, flags, None))


def movable(path: str) -> list[str]:
    """
    Folders above a path that could get another name, and what is private with them: the next child
    would look for it in vain, and hide nothing. What is a mount keeps its name.
    """
    found, above = [], os.path.dirname(path)
    while above != "/":
        if os.path.isdir(above) and os.access(os.path.dirname(above), os.W_OK):
            found.append(above)
        above = os.path.dirname(above)
    return found


def drop_capabilities() -> None:
    """Who makes a namespace of users may do everything in it; code of a playbook need not."""
    head = (ctypes.c_uint32 * 2)(CAPABILITIES, 0)
    checked(libc.capset(head, (ctypes.c_uint32 * 6)()))


def write_to(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


def checked(answer: int) -> None:
    if answer != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
