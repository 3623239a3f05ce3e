"""The program `noetl`, run as a user runs it."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.processes import ran

NOETL = str(Path(sys.executable).with_name("noetl"))
ROOT = Path(__file__).parent.parent.parent
HELLO = ROOT / "examples" / "01-hello" / "playbook.yaml"


class Answer(NamedTuple):
    """What the program said, and how it ended."""

    code: int
    out: str
    err: str

    def objects(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]


AT_THE_START = ("PYTHON", "LD_", "LC_", "LANG", "TZ", "MALLOC")
"""Variables that Python or the system reads before the program does."""
BEFORE = {name: value for name, value in os.environ.items() if name.startswith(AT_THE_START)}

POWERLESS = ("setpriv", "--bounding-set", "-dac_override,-dac_read_search", "--inh-caps", "-all")
"""Root obeys the bits of permissions, too."""


def noetl(
    *words: str | bytes | Path,
    stdin: bytes = b"",
    before: Sequence[str] = (),
    **environment: str,
) -> Answer:
    """
    Run `noetl` with these words; no traceback may ever be in its answer.

    In a process of its own, forked from one that has imported the commands: the installed program
    itself where something goes before it, or is told to it before it begins.
    """
    given = {**os.environ, **environment}
    early = {name: value for name, value in given.items() if name.startswith(AT_THE_START)}
    if before or early != BEFORE:
        code, out, err = installed([*before, NOETL, *words], stdin, given)
    else:
        code, out, err = ran([os.fsdecode(word) for word in words], stdin, given)
    answer = Answer(code, out.decode(), err.decode())
    assert "Traceback" not in answer.out + answer.err
    assert "internal error" not in answer.out + answer.err
    return answer


def installed(
    words: Sequence[str | bytes | Path], stdin: bytes, environment: dict[str, str]
) -> tuple[int, bytes, bytes]:
    done = subprocess.run(
        words, input=stdin, capture_output=True, timeout=600, check=False, env=environment
    )
    return done.returncode, done.stdout, done.stderr
