"""
What a jq child does: one program after the other, each on its own input.

jq runs to its end whatever happens around it, so it has a process of its own, which can be
killed. It holds no environment, and after its start it can open no file: a program sees its
input and nothing else. The worker's side is `tools/transform/tool.py`.
"""

import importlib.util
import marshal
import resource
import time
from typing import Any

from .frames import receive, send
from .limits import address_space
from .namespaces import bind_to

PROGRAMS = 64
"""Compiled programs that are kept."""
RESULT, UNREADABLE, FAILED = b"R", b"C", b"E"


def serve(connection: int, worker: int, module: str) -> None:
    """Answer until the worker closes the connection."""
    bind_to(worker, adopt=False)
    jq = loaded(module)
    for name in (resource.RLIMIT_CORE, resource.RLIMIT_FSIZE, resource.RLIMIT_NPROC):
        resource.setrlimit(name, (0, 0))
    own = address_space()
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))
    programs: dict[str, Any] = {}
    while True:
        memory, seconds, text, given = marshal.loads(receive(connection))
        bound(resource.RLIMIT_AS, own + memory)
        bound(resource.RLIMIT_CPU, int(time.process_time()) + seconds)
        send(connection, *answer(jq, programs, text, given))


def bound(name: int, most: int) -> None:
    """For the next program; a worker that is bounded itself can give no more than it has."""
    hard = resource.getrlimit(name)[1]
    inside = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(name, (inside, hard))


def answer(jq: Any, programs: dict[str, Any], text: str, given: str) -> tuple[bytes, bytes]:
    """All outputs, one JSON text in each line; or why there are none."""
    try:
        program = programs.get(text)
        if program is None:
            if len(programs) >= PROGRAMS:
                programs.clear()
            program = programs[text] = jq.compile(text)
    except ValueError as fault:
        return UNREADABLE, str(fault).encode()
    try:
        return RESULT, program.input_text(given).text().encode()
    except ValueError as fault:
        return FAILED, str(fault).encode()


def loaded(module: str) -> Any:
    """The module by its file: the folder that it lies in holds others that are not for us."""
    spec = importlib.util.spec_from_file_location("jq", module)
    assert spec is not None, "a file that was found"
    assert spec.loader is not None, "a file that can be loaded"
    jq = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(jq)
    jq.compile(".").input_text("0").text()  # what is made at first use is made now
    return jq
