"""Kernels that allow less than this one: without Landlock, for this process and its children."""

import ctypes
import struct

LANDLOCK = 444
NO_NEW_PRIVILEGES, SECCOMP, FILTER = 38, 22, 2
ALLOW, NO_SUCH_CALL = 0x7FFF0000, 0x00050000 | 38


class Program(ctypes.Structure):
    """struct sock_fprog."""

    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def forbid_landlock() -> None:
    """By a filter of system calls, as an older kernel would answer."""
    steps = (
        (0x20, 0, 0, 0),
        (0x15, 0, 1, LANDLOCK),
        (0x06, 0, 0, NO_SUCH_CALL),
        (0x06, 0, 0, ALLOW),
    )
    packed = b"".join(struct.pack("HBBI", *step) for step in steps)
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0) == 0
    assert libc.prctl(SECCOMP, FILTER, ctypes.byref(Program(len(steps), packed))) == 0
