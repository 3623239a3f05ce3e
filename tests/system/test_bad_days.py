"""
Bad input and bad days: a clear message, an honest status, nothing lost.

What the program says is compared with words that a person needs; every execution is verified
when its test is over.
"""

import contextlib
import os
import select
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest
from tests.support.disturbed import effect
from tests.support.http_server import HttpServer
from tests.support.ledger import keeping
from tests.support.processes import PATIENCE, Home, Running
from tests.support.steps import (
    Tree,
    allow,
    arc,
    loop,
    noop,
    otherwise,
    playbook,
    refuse,
    sets,
    step,
    task,
    when,
)
from tests.system.program import NOETL

PYTHON = "python"
SLEEPS = "import time\nprint('begun', flush=True)\ntime.sleep(600)"


def code(label: str, text: str, *rules: Tree, **args: Any) -> Tree:
    return task(label, PYTHON, *rules, code=text, args=args)


def limited(**limits: Any) -> Tree:
    return {"kind": "local", "spec": {"policy": {"limits": limits}}}


def run(folder: Path, text: str, *words: str, **environment: str) -> Running:
    """Run a playbook of this text in a home beside it."""
    file = folder / "playbook.yaml"
    file.write_text(text)
    return Running(folder / "home", "run", file, *words, **environment)


# ── bad input ────────────────────────────────────────────────────────────────────────────────

UNHOLDABLE = {
    "not a number": ("result = float('nan')", "nan"),
    "infinite": ("result = [1, float('-inf')]", "inf"),
    "bytes": ("result = b'abc'", "bytes"),
    "too many digits": ("result = 10**5000", "4300 digits"),
    "circular": ("result = []\nresult.append(result)", ""),
    "set": ("result = {1, 2}", "set"),
    "function": ("result = {'f': print}", ""),
    "deep": ("result = []\nfor _ in range(100_000): result = [result]", ""),
    "half a character": ("result = chr(0xD800)", ""),
    "keys": ("result = {(1, 2): 3}", ""),
}


@pytest.mark.rule("OUT-4")
@pytest.mark.parametrize(("text", "word"), UNHOLDABLE.values(), ids=UNHOLDABLE)
def test_what_no_json_can_hold_is_an_error_of_its_task(
    text: str, word: str, tmp_path: Path
) -> None:
    seen = when("outcome.status == 'error'", set_ctx={"kind": "{{ outcome.error.kind }}"})
    steps = [step("start", code("odd", text, seen), arcs=[arc("end")]), step("end", noop("on"))]
    answer = run(tmp_path, playbook(*steps), "--json").answer()
    assert (answer["status"], answer["ctx"]["kind"]) == ("completed", "result")
    failed = run(tmp_path, playbook(step("start", code("odd", text))))
    assert failed.ended() == 1
    assert "step 'start': result:" in failed.out
    assert word in failed.out.lower()


def test_huge_numbers_come_back_as_they_were(tmp_path: Path) -> None:
    keep = otherwise(set_ctx={"n": "{{ outcome.result }}"})
    steps = [
        step("start", code("huge", "result = -(10**400)", keep), arcs=[arc("end")]),
        step("end", code("same", "result = n == -(10**400)", n="{{ ctx.n }}")),
    ]
    answer = run(tmp_path, playbook(*steps), "--json").answer()
    assert (answer["status"], answer["ctx"]["n"], answer["result"]) == (
        "completed",
        -(10**400),
        True,
    )


ENDLESS = {
    "jump": (
        [step("start", noop("again", when(True, "jump", to="again")))],
        limited(max_task_runs=50),
        "more than 50 task runs in one pipeline",
    ),
    "cycle": (
        [step("start", noop("go"), arcs=[arc("start")])],
        limited(max_step_runs=50),
        "more than 50 step runs",
    ),
}


@pytest.mark.rule("DOC-4")
@pytest.mark.parametrize(("steps", "executor", "words"), ENDLESS.values(), ids=ENDLESS)
def test_what_has_no_end_is_ended(
    steps: list[Tree], executor: Tree, words: str, tmp_path: Path
) -> None:
    running = run(tmp_path, playbook(*steps, executor=executor))
    assert running.ended() == 1
    assert words in running.out
    assert "limit" in running.out


FAILING = {
    "undefined": (step("start", code("x", "result = 1", n="{{ ctx.nowhere }}")), "nowhere"),
    "no list": (step("start", noop("x"), loop=loop("{{ 3 }}")), "must evaluate to a list, got int"),
    "conflict": (
        step(
            "start",
            noop("x", otherwise(set_ctx={"k": "{{ iter.n }}"})),
            loop=loop([1, 2], mode="parallel"),
        ),
        "declare a reducer",
    ),
}


@pytest.mark.parametrize(("failing", "words"), FAILING.values(), ids=FAILING)
def test_a_mistake_is_named(failing: Tree, words: str, tmp_path: Path) -> None:
    running = run(tmp_path, playbook(failing))
    assert running.ended() == 1
    assert words in running.out
    home = Home(tmp_path / "home")
    assert home.status(home.roots()[0]) == "failed"


DEATHS = {
    "killed": "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
    "gone": "import os\nos._exit(3)",
    "left": "raise SystemExit(7)",
    "broken": "import ctypes\nctypes.string_at(0)",
}


@pytest.mark.rule("TOOL-3")
@pytest.mark.parametrize("text", DEATHS.values(), ids=DEATHS)
def test_a_child_that_dies_is_an_error_of_its_task(text: str, tmp_path: Path) -> None:
    rules = when("outcome.status == 'error'", set_ctx={"kind": "{{ outcome.error.kind }}"})
    steps = [
        step("start", code("dies", text, rules), arcs=[arc("end")]),
        step("end", code("lives", "result = 'alive'")),
    ]
    answer = run(tmp_path, playbook(*steps), "--json").answer()
    assert answer["status"] == "completed"
    assert (answer["ctx"], answer["result"]) == ({"kind": "python"}, "alive")


# ── bad days ─────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A home on a small file system of its own; needs root, which the suite has in CI."""
    folder = tmp_path / "home"
    folder.mkdir()
    mount("-t", "tmpfs", "-o", "size=1m", "tmpfs", folder)
    yield folder
    mount("-o", "remount,rw,size=64m", folder)
    subprocess.run(["umount", "-l", folder], check=True)


def mount(*words: str | Path) -> None:
    subprocess.run(["mount", *words], check=True)


def filling(count: int) -> str:
    """A loop that fills the log, row by row."""
    work = noop("keep", otherwise(set_prev="{{ 'x' * 2000 ~ iter.n }}"))
    many = loop(f"{{{{ range({count}) | list }}}}")
    first = step("start", code("first", "result = 1"), arcs=[arc("many")])
    return playbook(first, step("many", work, loop=many, arcs=[arc("end")]), step("end", noop("x")))


def test_a_full_disk_is_said_and_the_run_goes_on_when_there_is_room(small_disk: Path) -> None:
    running = run(small_disk.parent, filling(2000), NOETL_RUN_AHEAD="0")
    assert running.ended() == 3
    home = Home(small_disk)
    (name,) = home.roots()
    assert "no space left on the disk" in running.err
    assert f"noetl resume {name}" in running.err
    mount("-o", "remount,size=64m", small_disk)
    assert home.status(name) == "running"
    resumed = Running(home.folder, "resume", name, "--json", name="resumed")
    answer = resumed.answer()
    assert (resumed.ended(), answer["status"]) == (0, "completed")
    assert [row["runs"] for row in answer["steps"]] == [1, 1, 1]
    assert Running(home.folder, "replay", name, "--verify").ended() == 0


def test_a_result_that_finds_no_room_fails_its_task(small_disk: Path) -> None:
    text = playbook(
        step("start", code("big", "result = 'x' * 3_000_000"), arcs=[arc("end")]),
        step("end", noop("x")),
    )
    running = run(small_disk.parent, text)
    home = Home(small_disk)
    for number in range(20):
        if running.ended() != 3:
            break
        # The half-written body left no room for the row that tells of the start, which comes
        # after 0.2 s on a busy machine: that is said, and the run goes on.
        (name,) = home.roots()
        assert "no space left on the disk" in running.err
        assert f"noetl resume {name}" in running.err
        running = Running(home.folder, "resume", name, name=f"resumed-{number}")
    assert running.ended() == 1
    (name,) = home.roots()
    assert "No space left on device; free space" in running.out
    assert home.status(name) == "failed"
    assert list(small_disk.rglob("*.part")) == []
    assert Running(home.folder, "replay", name, "--verify").ended() == 0


def test_a_read_only_disk_is_said(small_disk: Path) -> None:
    text = playbook(step("start", noop("x")))
    assert run(small_disk.parent, text).ended() == 0
    home = Home(small_disk)
    (name,) = home.roots()
    file = small_disk.with_name("playbook.yaml")
    mount("-o", "remount,ro", small_disk)
    refused = subprocess.run(
        [NOETL, "run", file],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "NOETL_HOME": str(home.folder)},
    )
    mount("-o", "remount,rw", small_disk)
    assert refused.returncode == 3
    assert "read-only" in refused.stderr.lower()
    assert "Traceback" not in refused.stderr
    assert home.roots() == [name]


def test_a_home_of_a_newer_program_is_left_untouched(tmp_path: Path) -> None:
    text = playbook(step("start", noop("x")))
    assert run(tmp_path, text).ended() == 0
    file = tmp_path / "home" / "noetl.db"
    connection = apsw.Connection(str(file))
    connection.execute("pragma user_version = 99")
    connection.close()
    before = {path.name: path.read_bytes() for path in file.parent.iterdir() if path.is_file()}
    for words in (["run", tmp_path / "playbook.yaml"], ["list"], ["resume", "x"]):
        refused = Running(tmp_path / "home", *words)
        assert refused.ended() == 3
        assert "written by a newer NoETL" in refused.err
    after = {path.name: path.read_bytes() for path in file.parent.iterdir() if path.is_file()}
    assert after == before


def test_a_playbook_that_changes_meanwhile_does_not_change_the_run(tmp_path: Path) -> None:
    """T15: it was killed in the midst of a task; what goes on is the text that it began with."""
    with keeping() as ledger:
        asks = effect("ask", "old", otherwise(set_ctx={"who": "{{ outcome.result.data }}"}))
        last = step("end", sets("says", end="{{ ctx.who }}"))
        text = playbook(step("start", asks, arcs=[arc("end")]), last, workload={"url": ledger.url})
        running = run(tmp_path, text)
        ledger.came = lambda _: running.kill()
        assert running.ended() == -signal.SIGKILL
        ledger.came = lambda _: None
        (tmp_path / "playbook.yaml").write_text(playbook(step("start", sets("new", who="new"))))
        home = Home(tmp_path / "home")
        resumed = Running(home.folder, "resume", home.roots()[0], "--json", name="resumed")
        answer = resumed.answer()
    assert (answer["status"], answer["ctx"]) == ("completed", {"who": "old", "end": "old"})
    assert len(ledger.effects) == 2
    assert len(set(ledger.effects)) == 1, "the same key both times"


CANCELLED: dict[str, Callable[[str], Tree]] = {
    "python": lambda _: code("waits", SLEEPS),
    "http": lambda url: task("waits", "http", url=f"{url}/hang"),
    "child": lambda _: task("waits", "playbook", path="child.yaml"),
    "pause": lambda _: noop("waits", when("_attempt < 3", "retry", attempts=3, delay=600)),
}


@pytest.mark.rule("NEXT-8", "TOOL-1")
@pytest.mark.parametrize("kind", CANCELLED)
def test_cancel_from_another_process_reaches_what_runs(
    kind: str, tmp_path: Path, http_server: HttpServer
) -> None:
    sleeper = code("sleeps", SLEEPS)
    (tmp_path / "child.yaml").write_text(playbook(step("start", sleeper)))
    text = playbook(step("start", CANCELLED[kind](http_server.url)))
    running = run(tmp_path, text)
    home = Home(tmp_path / "home")
    while running.waits(0.01) and not begun(kind, home, running, http_server):
        pass
    cancelled = Running(home.folder, "cancel", home.roots()[0], name="cancelled")
    assert cancelled.ended() == 0
    assert running.ended() == 1
    assert {home.status(name) for name in home.names()} == {"cancelled"}
    assert len(home.names()) == (2 if kind == "child" else 1)
    assert children_of(running.pid) == []


def begun(kind: str, home: Home, running: Running, server: HttpServer) -> bool:
    """Whether the task is in the midst of it."""
    if kind == "http":
        return server.count("/hang") == 1
    if kind == "pause":
        return home.decisions() >= 2
    return "begun" in running.out + running.err


def children_of(session: int) -> list[int]:
    """Processes whose parent or session is this one."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if session in (int(fields[1]), int(fields[3])) and fields[0] not in "ZX":
                found.append(int(entry.name))
    return found


def test_cancel_ends_what_is_parked(tmp_path: Path, http_server: HttpServer) -> None:
    """A token that waits for ctx, in an execution whose process was killed."""
    steps = [
        step("start", noop("go"), arcs=[arc("closed"), arc("waits")], mode="inclusive"),
        step("closed", noop("x"), admit=[allow("ctx.open"), refuse()]),
        step("waits", task("hang", "http", url=f"{http_server.url}/hang")),
    ]
    running = run(tmp_path, playbook(*steps))
    http_server.wait_for("/hang")
    running.kill()
    running.ended()
    home = Home(tmp_path / "home")
    (name,) = home.roots()
    status = Running(home.folder, "status", name, name="status")
    assert status.ended() == 0
    assert "admission refused the token" in status.out
    assert "interrupted" in status.out
    assert Running(home.folder, "cancel", name, name="cancelled").ended() == 0
    assert home.status(name) == "cancelled"


def test_a_killed_run_leaves_no_child_behind(tmp_path: Path) -> None:
    text = playbook(
        step(
            "start",
            code("sleeps", "import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(600)"),
        )
    )
    running = run(tmp_path, text)
    while running.waits(0.01) and " | " not in running.out + running.err:
        pass
    children = below(running.pid)
    assert children
    watched = [os.pidfd_open(child) for child in children]
    running.kill()
    assert running.ended() == -signal.SIGKILL
    for descriptor in watched:
        ready, _, _ = select.select([descriptor], [], [], PATIENCE)
        os.close(descriptor)
        assert ready, "a child has outlived its parent"


def below(parent: int) -> list[int]:
    """The processes under one, as seen from here: inside it may know itself by another number."""
    found: list[int] = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            number, _, fields = stat.read_text().partition(" (")
            if int(fields.rpartition(") ")[2].split()[1]) == parent:
                found += [int(number), *below(int(number))]
    return found


def test_twenty_programs_share_one_home(tmp_path: Path) -> None:
    text = playbook(step("start", *[noop(f"n{n}") for n in range(3)], loop=loop([1, 2, 3])))
    file = tmp_path / "playbook.yaml"
    file.write_text(text)
    home = Home(tmp_path / "home")
    all_ = [Running(home.folder, "run", file, name=f"run{n}") for n in range(20)]
    assert [running.ended() for running in all_] == [0] * 20
    assert "locked" not in "".join(running.err for running in all_)
    assert len(home.names()) == 20
    assert {home.status(name) for name in home.names()} == {"completed"}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_says_how_to_go_on(
    number: signal.Signals, tmp_path: Path, http_server: HttpServer
) -> None:
    running = run(
        tmp_path, playbook(step("start", task("x", "http", url=f"{http_server.url}/hang")))
    )
    http_server.wait_for("/hang")
    running.tell(number)
    assert running.ended() == 130
    home = Home(tmp_path / "home")
    (name,) = home.roots()
    assert running.out.splitlines()[-1] == f"interrupted; continue with: noetl resume {name}"
    assert home.status(name) == "running"


def test_a_closed_pipe_does_not_end_the_run(tmp_path: Path) -> None:
    """`noetl run … | head -1`: the reader is gone, the run comes to its end."""
    steps = [step("start", code("x", "print('much\\n' * 9000)\nresult = 1"), arcs=[arc("end")])]
    (tmp_path / "playbook.yaml").write_text(playbook(*steps, step("end", noop("y"))))
    home = Home(tmp_path / "home")
    with subprocess.Popen(
        [NOETL, "run", tmp_path / "playbook.yaml"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "NOETL_HOME": str(home.folder)},
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        process.stderr.close()
        process.wait(PATIENCE)
    assert home.status(home.roots()[0]) == "completed"


@pytest.mark.rule("TOOL-1")
def test_a_child_that_nobody_waits_for_comes_to_its_end(tmp_path: Path) -> None:
    (tmp_path / "child.yaml").write_text(playbook(step("start", code("x", "result = 1"))))
    text = playbook(step("start", task("go", "playbook", path="child.yaml", wait=False)))
    assert run(tmp_path, text).ended() == 0
    home = Home(tmp_path / "home")
    assert [home.status(name) for name in home.names()] == ["completed", "completed"]


@pytest.mark.rule("TOOL-1", "NEXT-8")
def test_cancel_reaches_a_child_that_nobody_waits_for(tmp_path: Path) -> None:
    (tmp_path / "child.yaml").write_text(playbook(step("start", code("x", SLEEPS))))
    go = task("go", "playbook", path="child.yaml", wait=False)
    running = run(tmp_path, playbook(step("start", go, code("y", SLEEPS))))
    while running.waits(0.01) and (running.out + running.err).count("begun") < 2:
        pass
    home = Home(tmp_path / "home")
    assert Running(home.folder, "cancel", home.roots()[0], name="cancelled").ended() == 0
    assert running.ended() == 1
    assert [home.status(name) for name in home.names()] == ["cancelled", "cancelled"]


@pytest.mark.rule("LOOP-1", "RES-2")
def test_a_list_that_was_streamed_into_the_store_is_a_collection(tmp_path: Path) -> None:
    with keeping() as ledger:
        rows = "{{ range(2000) | list }}"
        asks = effect("ask", rows, otherwise(set_ctx={"rows": "{{ outcome.result.data }}"}))
        count = noop("x", otherwise(set_ctx={"sum": "{{ iter.n }}"}))
        many = loop("{{ ctx.rows }}", mode="parallel", reduce={"sum": "sum"})
        steps = [step("start", asks, arcs=[arc("each")]), step("each", count, loop=many)]
        more = {"executor": limited(max_payload_bytes=1000), "workload": {"url": ledger.url}}
        answer = run(tmp_path, playbook(*steps, **more), "--json").answer()
    assert (answer["status"], answer["ctx"]["sum"]) == ("completed", 1999000)
