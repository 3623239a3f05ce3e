"""
What a warm child does: one request after the other, each in fresh names, answered in JSON.

It is started with `-I -S` and uses the standard library alone. It never imports NoETL, so that
neither the worker's memory nor its packages are within reach of the code of a playbook.
A request is a length and marshalled `(code, args, libs, memory, seconds of processor time,
shared)`; an answer is a length, a tag and JSON. The worker's side is `tools/python/child.py`.
"""

from __future__ import annotations

import gc
import io
import os
import resource
import sys

# By name, since code may replace what these modules hold.
from marshal import loads
from os import _exit, getpid, write
from resource import setrlimit
from time import monotonic, process_time

from .answer import failure, to_json
from .frames import AGAIN, FAILED, FAILED_WITH_STRAYS, LAST, QUICK, SOON, Frames
from .kept import Kept
from .limits import LIMITS, address_space, has_children, limit
from .namespaces import bind_to
from .program import Program, run

TYPE_CHECKING = False  # `typing` takes longer to load than all the rest
if TYPE_CHECKING:
    from typing import Any

PROGRAMS = 64
"""Compiled codes that are kept."""
HIDDEN = ("ctypes", "inside", "opcode", "resource", "signal", "zipimport")
"""What is loaded here and not for the code of a playbook."""


class PrintStream(io.RawIOBase):
    """What Python code prints: both streams share one pipe, which keeps their order."""

    def __init__(self, pipe: int, stream: int) -> None:
        self._pipe, self._stream = pipe, stream

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._stream

    def write(self, text: Any) -> int:
        # With its head a piece stays below PIPE_BUF: the kernel never mixes two of them.
        piece = bytes(text[:4_000])
        write(self._pipe, bytes((self._stream, *divmod(len(piece), 256))) + piece)
        return len(piece)


def serve(control: int, printed: int, parent: int) -> None:
    """Answer requests until the worker closes the connection."""
    bind_to(parent)
    for resource_name, most in LIMITS.items():
        limit(resource_name, most)
    for descriptor in (control, printed):
        os.set_inheritable(descriptor, False)
    sys.stdout, sys.stderr = opened(printed, 1), opened(printed, 2)
    os.umask(0o077)
    sys.dont_write_bytecode = True  # a folder of libs belongs to others too
    for name in [name for name in sys.modules if name.partition(".")[0] in HIDDEN]:
        del sys.modules[name]
    kept = Kept(os.getcwd())
    gc.freeze()
    programs: dict[str, Program] = {}
    frames = Frames(control)
    bound, pid, cpu_hard = False, getpid(), resource.getrlimit(resource.RLIMIT_CPU)[1]
    allowed = 0
    while True:
        text, args, libs, memory, seconds, shared = loads(frames.receive())
        most = int(process_time()) + seconds
        if most != allowed:
            setrlimit(resource.RLIMIT_CPU, (most, cpu_hard))
            allowed = most
        if not bound:  # to one set of libs and one limit, for all calls that follow
            limit(resource.RLIMIT_AS, address_space() + memory)
            if libs:
                kept.find(libs)
            bound = True
        tag, body = answer(text, args, kept, programs, shared=shared)
        if getpid() != pid:  # a fork that the code did not end: only one may answer
            _exit(0)
        frames.send(tag, body)
        del text, args, body


def answer(
    text: str, args: dict[str, Any], kept: Kept, programs: dict[str, Program], *, shared: bool
) -> tuple[bytes, bytes]:
    """Run the code; a fault of any kind is an answer too. What is shared is not looked over."""
    out, err = sys.stdout, sys.stderr
    try:
        program = programs.get(text)
        if program is None:
            if len(programs) >= PROGRAMS:
                programs.clear()
            program = programs[text] = Program(text)
            kept.learn(program.modules)
        began = monotonic()
        body = to_json(run(program, args))
    except BaseException as fault:
        flush(out, err)
        return FAILED_WITH_STRAYS if has_children() else FAILED, failure(fault, text)
    if program.pure:
        took = monotonic() - began
        return (QUICK if took < 0.0001 else SOON if took < 0.001 else AGAIN), body
    flush(out, err)
    if program.harmless or (shared and kept.alone()):
        return AGAIN, body
    return AGAIN if not program.lasting and restored(kept) else LAST, body


def restored(kept: Kept) -> bool:
    try:
        return kept.restore()
    except BaseException:  # the code broke what the look needs: reason enough
        return False


def opened(pipe: int, stream: int) -> io.TextIOWrapper:
    raw = io.BufferedWriter(PrintStream(pipe, stream))
    return io.TextIOWrapper(raw, "utf-8", errors="backslashreplace", line_buffering=True)


def flush(*streams: Any) -> None:
    for stream in streams:
        try:
            stream.flush()
        except (OSError, ValueError):  # the code closed it; there is nobody to tell
            continue
