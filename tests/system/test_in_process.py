"""Playbooks run inside a program, and a server asked by it: what the page shows does happen."""

import asyncio
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from tests.house.markdown import Block, blocks_of, prose_of
from tests.house.tree import ROOT
from tests.system.program import HELLO, noetl
from tests.system.servers import Node, node

import noetl as library
from noetl.client import asks
from noetl.client.async_client import AsyncClient
from noetl.client.client import Client
from noetl.errors import UnreadableFile

PAGE = ROOT / "docs" / "reference" / "python.md"
BLOCKS = list(blocks_of(PAGE))
[ORDERS] = [block.text for block in BLOCKS if block.language == "yaml"]
SAMPLES = [(block, follows) for block, follows in pairwise(BLOCKS) if block.language == "python"]
WAITS = """apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: waits, path: tests/waits }
workflow:
  - step: start
    tool:
      - hold: { kind: shell, command: "touch 'FOLDER/begun'; sleep 600" }
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with node(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.mark.parametrize(("sample", "shows"), SAMPLES, ids=lambda block: f"line-{block.line}")
def test_a_sample_prints_what_the_page_says(
    sample: Block, shows: Block, server: Node, tmp_path: Path
) -> None:
    (tmp_path / "orders.yaml").write_text(ORDERS)
    if "AsyncClient" in sample.text:
        assert server.here("register", tmp_path / "orders.yaml").code == 0
    text = sample.text.replace("http://127.0.0.1:8765", server.url)
    done = subprocess.run(
        [sys.executable, "-c", text],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        cwd=tmp_path,
        env={"NOETL_HOME": str(server.home if "Client" in text else tmp_path / "home")},
    )
    assert (done.stdout, done.stderr) == (shows.text, "")


def test_the_page_names_every_method_of_the_clients() -> None:
    named = set(re.findall(r"`([a-z_]+)`", "\n".join(prose_of(PAGE)).partition("## A server")[2]))
    questions = [
        name
        for name, made in vars(asks).items()
        if inspect.isfunction(made)
        and not name.startswith("_")
        and made.__module__ == asks.__name__
    ]
    assert sorted(set(questions) - named) == []


def test_the_page_names_everything_that_noetl_offers() -> None:
    text = PAGE.read_text("utf-8")
    offered = set(library.__all__) - {"__version__"}
    assert sorted(name for name in offered if f"noetl.{name}" not in text) == []
    assert {name: getattr(library, name).__name__ for name in offered} == {n: n for n in offered}
    assert (library.Client, library.AsyncClient) == (Client, AsyncClient)
    with pytest.raises(AttributeError, match="no attribute 'misspelt'"):
        _ = getattr(library, "misspelt")  # noqa: B009


def test_the_import_brings_nothing_else() -> None:
    seen = "import sys; a = set(sys.modules); import noetl; print(len(set(sys.modules) - a))"
    done = subprocess.run([sys.executable, "-c", seen], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "1"


def test_both_take_the_same_arguments() -> None:
    assert inspect.signature(library.run) == inspect.signature(library.run_async)


def test_a_failure_that_is_not_raised(tmp_path: Path) -> None:
    file = tmp_path / "orders.yaml"
    file.write_text(ORDERS)
    done = library.run(file, workload={"orders": []}, home=tmp_path, check=False, events=False)
    assert (done.status, done.result, done.events) == ("failed", None, ())
    assert done.failure is not None
    assert (done.failure.step, done.failure.kind) == ("start", "python")
    assert noetl("status", done.execution_id, NOETL_HOME=str(tmp_path)).code == 0


def test_what_cannot_be_run_raises_before_anything_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(ORDERS.replace("kind: python", "kind: pyhton"))
    with pytest.raises(library.PlaybookRejected) as rejected:
        library.run(file, home=tmp_path / "home")
    assert [finding.code for finding in rejected.value.findings] == ["unknown-kind"]
    with pytest.raises(UnreadableFile, match="there is no such file"):
        library.run(tmp_path / "none.yaml", home=tmp_path / "home")
    assert not (tmp_path / "home").exists()


def test_progress_goes_to_standard_error(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert library.run(HELLO, home=tmp_path).warnings == ()
    assert capfd.readouterr() == ("", "")
    library.run(HELLO, home=tmp_path, quiet=False)
    told = capfd.readouterr()
    assert (told.out, "good_morning: done" in told.err) == ("", True)


def test_a_running_event_loop_is_not_blocked(tmp_path: Path) -> None:
    async def blocking() -> None:
        library.run(HELLO, home=tmp_path)

    with pytest.raises(RuntimeError, match=r"await noetl\.run_async"):
        asyncio.run(blocking())


def test_what_is_cancelled_can_be_resumed(tmp_path: Path) -> None:
    file = tmp_path / "waits.yaml"
    file.write_text(WAITS.replace("FOLDER", str(tmp_path)))

    async def cancelled() -> None:
        running = asyncio.ensure_future(library.run_async(file, home=tmp_path / "home"))
        while not (tmp_path / "begun").exists():
            await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(cancelled())
    [row] = noetl("list", "--json", NOETL_HOME=str(tmp_path / "home")).objects()
    assert (row["path"], row["status"], row["interrupted"]) == ("tests/waits", "running", True)
