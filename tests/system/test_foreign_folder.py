"""What lies in the folder that a command is called in is never run by NoETL itself."""

import asyncio
import os
from pathlib import Path

import pytest
from tests.system.program import HELLO, NOETL, noetl
from tests.system.servers import NEUTRAL, Node, node

RUN = "open({!r}, 'a').write(__name__ + ' ')\n"
NAMES = ("yaml", "msgspec", "json", "sqlite3", "click", "litestar", "aiohttp", "sitecustomize")


@pytest.fixture
def foreign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with modules of names that NoETL imports; each leaves a trace where it is run."""
    folder = tmp_path / "project"
    for name in (*NAMES, "noetl"):
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").write_text(RUN.format(str(folder / "trace")))
    monkeypatch.chdir(folder)
    return folder


def test_no_server_and_no_worker_runs_modules_of_a_foreign_project(
    foreign: Path, tmp_path: Path
) -> None:
    with node(tmp_path / "home", workers=1) as up:
        assert up.here("register", HELLO, NOETL_SERVER=up.url).code == 0
        done = up.here("execute", "examples/hello", "--wait", NOETL_SERVER=up.url)
        assert done.code == 0, done
    alone = Node(tmp_path / "other")
    alone.here("worker", "start", "--server", "http://127.0.0.1:1", "--timeout", "1")
    alone.here("worker", "stop")
    assert not (foreign / "trace").exists()


def test_nor_does_what_an_agent_starts(foreign: Path, tmp_path: Path) -> None:
    from mcp import Client, StdioServerParameters  # slow, and every process collects this file

    home = str(tmp_path / "home")
    set_up = {**NEUTRAL, "NOETL_HOME": home}
    assert noetl("register", HELLO, NOETL_HOME=home).code == 0
    program = StdioServerParameters(
        command=NOETL, args=["mcp"], env={**os.environ, **set_up}, cwd=str(foreign)
    )

    async def work() -> None:
        async with Client(program) as client:
            answer = await client.call_tool("run", {"playbook": "examples/hello"})
            assert not answer.is_error, answer.content

    asyncio.run(work())
    assert not (foreign / "trace").exists()


PLAYBOOK = """apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: t, path: t}
workflow: [{step: start, tool: [{look: {kind: shell, command: "cat %s; true"}}]}]
"""


@pytest.mark.parametrize("line", ["files = '.'", "home = 'h'", "namespaces = 'off'"])
def test_a_foreign_settings_file_shows_no_task_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    """Whoever wrote the playbook wrote the file beside it, too."""
    key, project = tmp_path / "user" / ".noetl" / "key", tmp_path / "project"
    key.parent.mkdir(parents=True, mode=0o700)
    project.mkdir()
    key.write_text("the-key-of-the-user")
    (project / "noetl.toml").write_text(f"{line}\n")
    (project / "p.yaml").write_text(PLAYBOOK % key)
    monkeypatch.chdir(project)
    monkeypatch.delenv("NOETL_HOME", raising=False)
    told = noetl("run", "p.yaml", "--json", HOME=str(tmp_path / "user"))
    assert "the-key-of" not in told.out + told.err
    assert ("take away a protection" in told.out) == ("files" not in line)
