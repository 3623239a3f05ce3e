"""A run of `noetl` in the background, whose lines a test waits for."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from tests.system.program import NOETL


class Running:
    """One process; all of its output is one stream of lines."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        self.lines: list[str] = []

    @property
    def _output(self) -> IO[str]:
        assert self.process.stdout is not None
        return self.process.stdout

    def wait_for(self, fact: str) -> str:
        """The first line that holds `fact`; the test fails if the process ends without it."""
        for line in self._output:
            self.lines.append(line.rstrip("\n"))
            if fact in line:
                return self.lines[-1]
        raise AssertionError(f"ended without {fact!r}: {self.lines}")

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def end(self) -> int:
        """The exit code, once all that it said has been read."""
        self.lines += [line.rstrip("\n") for line in self._output]
        code = self.process.wait(600)
        assert "Traceback" not in "\n".join(self.lines)
        return code

    @property
    def execution_id(self) -> str:
        """`path: execution ID` is the first line of every run."""
        return self.lines[0].rpartition(" ")[2]


@contextmanager
def running(*words: str | Path, home: Path) -> Iterator[Running]:
    """Start `noetl` with these words; whatever is left of it at the end is killed."""
    process = subprocess.Popen(
        [NOETL, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "NOETL_HOME": str(home), "PYTHONUNBUFFERED": "1"},
    )
    try:
        yield Running(process)
    finally:
        process.kill()
        process.wait(600)
        if process.stdout is not None:
            process.stdout.close()
