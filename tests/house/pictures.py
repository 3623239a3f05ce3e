"""Pictures and outputs of the pages, made by the program itself: nothing is drawn by hand."""

import io
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console, Group
from tests.house.markdown import blocks_of
from tests.house.tree import ROOT

from noetl.cli.running.progress import ExecutionProgress, StepProgress, TaskProgress
from noetl.cli.running.tree import picture

NOETL = Path(sys.executable).with_name("noetl")
WIDTH = 92
FONT = re.compile(r"\s*@font-face \{\{.*?\}\}", re.DOTALL)
"""Rich names fonts of another host."""
SVG = FONT.sub("", CONSOLE_SVG_FORMAT).replace("Fira Code", "DejaVu Sans Mono, Menlo, Consolas")
SAME = {
    r"\b0[0-9a-hjkmnp-tv-z]{17}\b": "06h3k9v2q8m4x0c7w1",
    r"(?m)^\S+: (?:started|\d+ of \d+ done)\n": "",
    r"(?m): done$": ": done in 0 ms",
    r"\b(\d+ ms|\d+\.\d s)\b": "12 ms",
}
"""What differs from run to run: ids, times, and lines that only a slow machine prints."""


def live_tree() -> str:
    """A moment of a run on a terminal, as SVG."""
    running = StepProgress("read_shops", "running", 1, 1, began=0.0, total=240, retries=4)
    running.done, running.failed_iterations = 171, 1
    running.tasks = {
        "1": TaskProgress("fetch", "http", 1),
        "2": TaskProgress("fetch", "http", 2, "HTTP 503, again in 2 s"),
        "3": TaskProgress("parse", "python", 1),
    }
    steps = (
        StepProgress("start", "done", 1, took=0.4),
        StepProgress("read_rates", "done", 1, took=1.2),
        running,
        StepProgress("total", "waits", note="token waits (join)"),
    )
    root = ExecutionProgress("06h3k9v2q8m4x0c7w1", "examples/sales", 0.0)
    root.steps = {step.name: step for step in steps}
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    console.print(Group(*picture(root, 12.0, 20)), highlight=False)
    return console.export_svg(title="noetl run sales.yaml", code_format=SVG, unique_id="live-tree")


@cache
def outputs() -> Mapping[str, str]:
    """What the first playbook of the README prints, and what `explain` says of a failed run."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "sales.yaml")
        file.write_text(first_playbook(), "utf-8")

        ran = said_in(folder, "run", "sales.yaml")
        failed = said_in(folder, "run", "sales.yaml", "--set", 'shops=["north", "sputh"]')
        explained = said_in(folder, "explain", re.findall(next(iter(SAME)), failed)[0])
    return {"ran": steady(ran), "explained": steady(explained)}


TOLERANT = "docs/reference/explain.md"


@cache
def tolerated() -> Mapping[str, str]:
    """What a run of the playbook in the page says of errors that did not fail it."""
    block = next(b.text for b in blocks_of(ROOT / TOLERANT) if b.language == "yaml")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "charge.yaml").write_text(block, "utf-8")
        said = {
            "tolerated": said_in(folder, "run", "charge.yaml"),
            "tolerated_explained": said_in(folder, "explain", "last"),
            "tolerated_again": said_in(
                folder, "restart", "last", "--from", "charge:1", "--set=away=[]"
            ),
        }
    return {name: steady(text) for name, text in said.items()}


def said_in(folder: str, *words: str) -> str:
    done = subprocess.run(
        [NOETL, *words],
        cwd=folder,
        env={"NOETL_HOME": f"{folder}/home", "COLUMNS": str(WIDTH), "PATH": "/usr/bin:/bin"},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=False,
    )
    return done.stdout


def first_playbook() -> str:
    return next(b.text for b in blocks_of(ROOT / "README.md") if b.language == "yaml")


def steady(text: str) -> str:
    for pattern, same in SAME.items():
        text = re.sub(pattern, same, text)
    return text.rstrip("\n")
