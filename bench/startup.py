"""How soon the program answers: `noetl --help`, `validate` and `run`, beside bare Python."""

import compileall
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from bench.figure import Figure
from bench.size import sized

REPEATS = sized(25, small=1)
ROOT = Path(__file__).parent.parent
NOETL = str(Path(sys.executable).with_name("noetl"))
HELLO = str(ROOT / "examples" / "01-hello" / "playbook.yaml")
IMPORTS = "import yaml, msgspec, jinja2, click"
RUN_IMPORTS = f"{IMPORTS}, apsw, asyncio"

COMPARED = (
    ("noetl --help / python -c pass", [NOETL, "--help"], "pass", 4.0),
    ("noetl validate / imports only", [NOETL, "validate", HELLO], IMPORTS, 1.5),
    ("noetl run / imports only", [NOETL, "run", HELLO], RUN_IMPORTS, 2.0),
    ("noetl run / python -c pass", [NOETL, "run", HELLO], "pass", 10.0),
)


def figures() -> list[Figure]:
    """Ours and the reference in turn, so that a busy moment hits both."""
    # A user's Python runs compiled files; an environment that forbids writing them would make
    # every start compile everything again.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    compileall.compile_dir(str(ROOT / "src"), quiet=1)
    with TemporaryDirectory() as home:
        environment["NOETL_HOME"] = home
        return [compared(*row, environment=environment) for row in COMPARED]


def compared(
    name: str, command: list[str], code: str, target: float, *, environment: dict[str, str]
) -> Figure:
    reference = [sys.executable, "-c", code]
    for warm_up in (command, reference):
        seconds(warm_up, environment)
    ours: list[float] = []
    theirs: list[float] = []
    for _ in range(REPEATS):
        ours.append(1000 * seconds(command, environment))
        theirs.append(1000 * seconds(reference, environment))
    return Figure.of(name, ours, theirs, target, "ms")


def seconds(command: list[str], environment: dict[str, str]) -> float:
    start = perf_counter()
    subprocess.run(command, check=True, capture_output=True, env=environment)
    return perf_counter() - start
