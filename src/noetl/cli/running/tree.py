"""A running execution as a live tree on a terminal: steps, tasks, attempts, loops."""

import asyncio
import sys
import time
from collections.abc import Iterator, Sequence

from rich.console import Console, Group
from rich.live import Live as Screen
from rich.text import Text

from noetl.cli.output import print_line
from noetl.cli.running.progress import ExecutionProgress, Progress, StepProgress, TaskProgress
from noetl.cli.running.words import seconds, short
from noetl.control.execution import Execution
from noetl.messages.events import Event

REFRESH = 0.1
"""Seconds between two pictures, at least."""
BAR = 24
SPIN = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
ICONS: dict[str, tuple[str, str]] = {
    "done": ("✔", "green"),
    "failed": ("✘", "bold red"),
    "waits": ("◌", "yellow"),
    "dropped": ("○", "dim"),
}


class TreeShow:
    """Show; see its protocol. The picture is drawn on the event loop, never more than it must."""

    def __init__(self, *, err: bool) -> None:
        self._progress = Progress()
        self._console = Console(stderr=err, highlight=False)
        self._screen = Screen(console=self._console, auto_refresh=False, transient=False)
        self._drawn_at = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, execution: Execution) -> None:
        self._progress.take_up(execution)
        self._screen.start()
        self._tick()

    def take(self, execution: Execution, events: Sequence[Event]) -> None:
        self._progress.take(execution.execution_id, execution.path, events)
        if self._screen.is_started and time.monotonic() - self._drawn_at >= REFRESH:
            self._draw()

    def hear(self, execution_id: str, place: str, text: str) -> None:
        del execution_id  # the tree shows where it stands
        text = f"{place} | {short(text, 10_000)}"
        if sys.stderr is not None and sys.stderr.isatty() and self._screen.is_started:
            self._console.print(Text(text, style="dim"))
        else:
            print_line(text, err=True)

    def tell(self, execution_id: str, step: str, text: str) -> None:
        del execution_id
        self._console.print(Text(f"{step}: {text}", style="yellow"))

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._screen.is_started:
            self._draw(last=True)
            self._screen.stop()

    def _tick(self) -> None:
        try:
            self._draw()
        except OSError:
            return  # the terminal is gone; whoever takes or ends next tells it
        self._timer = asyncio.get_running_loop().call_later(REFRESH, self._tick)

    def _draw(self, *, last: bool = False) -> None:
        self._drawn_at = time.monotonic()
        root = self._progress.root
        if root is not None:
            height = max(8, self._console.height - 2)
            self._screen.update(
                Group(*picture(root, self._progress.now(), height, last=last)), refresh=True
            )


Line = tuple[Text, bool]
"""A line, and whether it tells of something that has ended."""


def picture(root: ExecutionProgress, now: float, height: int, *, last: bool = False) -> list[Text]:
    """The whole tree, no higher than the terminal: what has ended gives way to what runs."""
    head = Text.assemble((root.path, "bold"), f"  execution {root.execution_id}")
    if root.state != "running":
        head.append(f"  {root.state}")
    lines = list(lines_of(root, now, "", last=last))
    excess = len(lines) - (height - 2)
    if excess > 0:
        lines = without(lines, excess + 1)
    return [head, *(text for text, _ in lines)]


def without(lines: list[Line], excess: int) -> list[Line]:
    """Leave out the first `excess` lines about what has ended; then, what is lowest."""
    kept: list[Line] = []
    left_out = 0
    for line in lines:
        if line[1] and left_out < excess:
            left_out += 1
        else:
            kept.append(line)
    more = excess - left_out
    if more > 0:
        kept, left_out = kept[:-more], left_out + more
    return [(Text(f"  … {left_out} more", style="dim"), True), *kept]


def lines_of(
    execution: ExecutionProgress, now: float, indent: str, *, last: bool
) -> Iterator[Line]:
    steps = list(execution.steps.values())
    for number, step in enumerate(steps):
        at_end = number == len(steps) - 1
        over = step.state in ("done", "failed", "dropped")
        yield step_line(step, now, f"{indent}{'└─' if at_end else '├─'}", last=last), over
        below = f"{indent}{'  ' if at_end else '│ '}"
        for task in step.tasks.values():
            yield task_line(task, below), False
        for child in step.children.values():
            yield Text.assemble((f"{below} ", "dim"), (child.path, "cyan")), False
            yield from lines_of(child, now, f"{below} ", last=last)


def step_line(step: StepProgress, now: float, prefix: str, *, last: bool) -> Text:
    spin = "·" if last else SPIN[int(now * 10) % len(SPIN)]
    icon, style = ICONS.get(step.state, (spin, "cyan"))
    line = Text.assemble((f"{prefix} ", "dim"), (icon, style), f" {step.name}")
    line.no_wrap, line.overflow = True, "ellipsis"
    if step.total is not None:
        line.append_text(loop_part(step))
    took = step.took if step.took is not None else (now - step.began if step.runs else None)
    if took is not None:
        line.append(f"  {seconds(took * 1000)}", "dim")
    if step.runs > 1:
        line.append(f"  {step.runs:,} runs", "dim")
    if step.retries:
        line.append(f"  {step.retries:,} {'retry' if step.retries == 1 else 'retries'}", "yellow")
    if step.note:
        line.append(f"  {short(step.note)}", "red" if step.state == "failed" else "yellow")
    return line


def loop_part(step: StepProgress) -> Text:
    """A bar and the counts: the same few characters for ten iterations and for a million."""
    total = step.total or 0
    ended = step.done + step.failed_iterations
    filled = BAR if not total else min(BAR, ended * BAR // total)
    part = Text.assemble(
        "  ", ("━" * filled, "green"), ("━" * (BAR - filled), "dim"), f" {step.done:,}/{total:,}"
    )
    if step.failed_iterations:
        part.append(f" {step.failed_iterations:,} failed", "red")
    return part


def task_line(task: TaskProgress, indent: str) -> Text:
    attempt = f"  attempt {task.attempt}" if task.attempt > 1 else ""
    line = Text.assemble(
        (f"{indent}   ", "dim"), f"{task.label} ", (f"({task.kind})", "dim"), (attempt, "yellow")
    )
    line.no_wrap, line.overflow = True, "ellipsis"
    if task.note:
        line.append(f"  {short(task.note)}", "yellow")
    return line
