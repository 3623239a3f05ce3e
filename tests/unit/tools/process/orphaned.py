"""A worker of its own process that is killed while its command runs."""

import subprocess
import sys
from pathlib import Path

WORKER = """
import asyncio, os
from tests.support.workplace import BenchPlace, call_of
from noetl.kinds.code import ShellInputs
from noetl.tools.process.tool import ShellTool

class Place(BenchPlace):
    def log(self, call, stream, text):
        print(text, flush=True)
        os.kill(os.getpid(), 9)

command = "echo $$; sleep {word}"
asyncio.run(ShellTool().call(call_of(ShellInputs(command=command)), Place()))
"""


def killed_worker(folder: Path, word: str) -> tuple[int, int]:
    """The number that the command printed before its worker died, and the worker's exit code."""
    root = Path(__file__).parents[4]
    ended = subprocess.run(
        [sys.executable, "-c", WORKER.format(word=word)],
        cwd=root,
        env={"PYTHONPATH": str(root), "TMPDIR": str(folder)},
        capture_output=True,
        check=False,
    )
    return int(ended.stdout or 0), ended.returncode
