"""The program from its first moment: `noetl`, and `python -m noetl`."""

import gc
import os
import signal
import sys
from types import FrameType

INTERRUPTED = 130
HOLDERS = {"mcp": False, "run": True, "server": False, "test": True, "up": False, "worker": True}
"""
Commands whose process holds keys, and whether it runs tasks from the start. Others that run tasks
come to it before the first (`cli/running/attend.py`).
"""


def leave(_number: int, _frame: FrameType | None) -> None:
    os.write(2, b"interrupted\n")
    os._exit(INTERRUPTED)


def start() -> int:
    """Ctrl-C has an answer while modules are still read, and while the process goes down."""
    signal.signal(signal.SIGINT, leave)
    gc.disable()  # modules are no garbage; `LazyGroup` enables it again when they are read
    from noetl.imports import sparing

    with sparing():
        from noetl.cli.main import main

    if HOLDERS.keys() & sys.argv[1:2]:
        from noetl.tools.environment import withdraw

        withdraw(mask_all=HOLDERS[sys.argv[1]])
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        code = main()
    finally:
        signal.signal(signal.SIGINT, leave)
    end_at_once(code)
    return code


def end_at_once(code: int) -> None:
    """
    End as Python ends, but for taking every module apart: the system frees all of it at once.

    Whoever still has work to end, or output that cannot be written, is left to Python.
    """
    import atexit
    import threading

    if any(one is not threading.main_thread() and not one.daemon for one in threading.enumerate()):
        return
    atexit._run_exitfuncs()
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except (OSError, ValueError):
        return
    os._exit(code)


if __name__ == "__main__":
    sys.exit(start())
