"""A program of its own from the first instruction: what its environment says holds from there."""

import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

from tests.system.program import NOETL


class Program:
    """As `Running`, which is forked and so has begun when it is given its environment."""

    def __init__(self, home: Path, *words: str, name: str, **more: str) -> None:
        self._err = home.with_name(f"{name}.err")
        with self._err.open("wb") as err:
            self._process = subprocess.Popen(
                [NOETL, *words],
                env={**os.environ, "NOETL_HOME": str(home), **more},
                stdin=subprocess.DEVNULL,
                stdout=err,
                stderr=err,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def err(self) -> str:
        return self._err.read_text()

    @property
    def process(self) -> "Program":
        return self

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def join(self, patience: float) -> None:
        self._process.wait(patience)

    def kill(self) -> None:
        self._process.kill()

    def tell(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)
