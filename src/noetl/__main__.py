"""The program from its first moment: `noetl`, and `python -m noetl`."""

import os
import signal
import sys
from types import FrameType

INTERRUPTED = 130
HOLDERS = {"run": True, "server": False, "test": True, "up": False, "worker": True}
"""Commands whose process holds keys, and whether it runs tasks."""


def leave(_number: int, _frame: FrameType | None) -> None:
    os.write(2, b"interrupted\n")
    os._exit(INTERRUPTED)


def start() -> int:
    """Ctrl-C has an answer while modules are still read, and while the process goes down."""
    signal.signal(signal.SIGINT, leave)
    from noetl.cli.main import main

    if HOLDERS.keys() & sys.argv[1:2]:
        from noetl.tools.environment import withdraw

        withdraw(mask_all=HOLDERS[sys.argv[1]])
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return main()
    finally:
        signal.signal(signal.SIGINT, leave)


if __name__ == "__main__":
    sys.exit(start())
