"""The installed program `noetl`, run as a user runs it."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

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


POWERLESS = ("setpriv", "--bounding-set", "-dac_override,-dac_read_search", "--inh-caps", "-all")
"""Root obeys the bits of permissions, too."""


def noetl(
    *words: str | bytes | Path,
    stdin: bytes = b"",
    before: Sequence[str] = (),
    **environment: str,
) -> Answer:
    """Run `noetl` with these words; no traceback may ever be in its answer."""
    done = subprocess.run(
        [*before, NOETL, *words],
        input=stdin,
        capture_output=True,
        timeout=60,
        check=False,
        env={**os.environ, **environment},
    )
    answer = Answer(done.returncode, done.stdout.decode(), done.stderr.decode())
    assert "Traceback" not in answer.out + answer.err
    assert "internal error" not in answer.out + answer.err
    return answer
