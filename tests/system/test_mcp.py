"""`noetl mcp`, asked by the client of its own library over the pipes of a real process."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import pytest
from tests.support.asking import asking
from tests.system.program import HELLO, NOETL, noetl
from tests.system.servers import FAILING, NEUTRAL, Node, node

from noetl.extras import needs

if TYPE_CHECKING:  # imported when it is used: every process of the suite collects this file
    from mcp import Client

TEXT = HELLO.read_text("utf-8")
TOOLS = ["events", "explain", "migrate", "register", "run", "status", "validate"]
HEAD = """apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: old, path: old}
workflow:
- step: start
"""
Environment = dict[str, str]


def served(
    work: "Callable[[Client], Awaitable[None]]",
    *words: str,
    folder: Path | None = None,
    **environment: str,
) -> None:
    """Start the server, work with it, and close its pipes as an agent does."""
    from mcp import Client, StdioServerParameters

    process = StdioServerParameters(
        command=NOETL, args=["mcp", *words], env={**NEUTRAL, **environment}, cwd=folder
    )

    async def session() -> None:
        async with Client(process) as client:
            await work(client)

    asyncio.run(session())


async def call(client: "Client", tool: str, **arguments: Any) -> dict[str, Any]:
    answer = await client.call_tool(tool, arguments)
    assert not answer.is_error, answer.content
    assert isinstance(answer.structured_content, dict)
    return answer.structured_content


async def answered(client: "Client", tool: str, **arguments: Any) -> Any:
    """Whatever it says, refused or not."""
    answer = await client.call_tool(tool, arguments)
    return answer.content, answer.structured_content


async def refusal(client: "Client", tool: str, **arguments: Any) -> str:
    from mcp.types import TextContent

    answer = await client.call_tool(tool, arguments)
    assert answer.is_error
    [said] = answer.content
    assert isinstance(said, TextContent)
    return said.text


def test_the_tools_and_what_they_may_do(tmp_path: Path) -> None:
    async def work(client: "Client") -> None:
        tools = (await client.list_tools()).tools
        assert sorted(tool.name for tool in tools) == TOOLS
        assert all(tool.description for tool in tools)
        reading = {
            tool.name for tool in tools if tool.annotations and tool.annotations.read_only_hint
        }
        assert reading == {"events", "explain", "migrate", "status", "validate"}

    served(work, NOETL_HOME=str(tmp_path))


def test_texts_are_checked_and_translated(tmp_path: Path) -> None:
    async def work(client: "Client") -> None:
        assert await call(client, "validate", playbook=str(HELLO)) == {
            "valid": True,
            "findings": [],
        }
        wrong = TEXT.replace("- step: done\n\n", "- step: dnoe\n\n", 1)
        found = await call(client, "validate", playbook=wrong)
        [finding] = found["findings"]
        assert not found["valid"]
        assert (finding["code"], finding["hint"]) == ("unknown-step", "did you mean 'done'?")
        old = TEXT.replace("      arcs:\n        - step: done\n", "      - step: done\n")
        made = await call(client, "migrate", playbook=old)
        assert (made["complete"], made["changed"]) == (True, True)
        assert (await call(client, "validate", playbook=made["text"]))["valid"]
        assert "no such file" in await refusal(client, "validate", playbook="nowhere.yaml")

    served(work, NOETL_HOME=str(tmp_path))


def test_no_file_is_read_but_playbooks_of_the_project(tmp_path: Path) -> None:
    """Agents call what only reads without anybody looking: it shows no token and no secret."""
    project, home = tmp_path / "project", tmp_path / "home"
    for folder in (project, home):
        folder.mkdir()
    (home / "token").write_text("noetl_4711")
    for name in ("secret.yaml", "project/secret.yaml"):
        (tmp_path / name).write_text("password: s3cret-value\n")
    (tmp_path / "outside.yaml").write_text(TEXT)
    (project / "token.yaml").symlink_to(home / "token")
    (project / ".env").write_text("noetl=s3cret-value\n")
    (project / "mine.yaml").write_text(TEXT)
    named = ("../home/token", "../secret.yaml", "../outside.yaml", "token.yaml", ".env")
    refused = (*named, str(home / "token"), "secret.yaml", "/proc/self/environ", "-", "")

    async def work(client: "Client") -> None:
        for tool in ("validate", "migrate", "register"):
            for name in refused:
                said = await refusal(client, tool, playbook=name)
                assert "is not a" in said, (tool, name, said)
                assert "s3cret-value" not in said
        assert (await call(client, "validate", playbook="mine.yaml"))["valid"]

    served(work, folder=project, NOETL_HOME=str(home))


def test_nor_by_a_playbook_that_names_one(tmp_path: Path) -> None:
    """A translation holds the text of a script, and a finding the names in it."""
    project, home = tmp_path / "project", tmp_path / "home"
    for folder in (project, home):
        folder.mkdir()
    for file in (home / "token", project / ".env", project / "mine.py"):
        file.write_text("noetl_s3cret_value")
    old = "script: {{ uri: {}, source: {{ type: file }} }}"
    texts = [f"kind: {kind}\n    {old}" for kind in ("python", "postgres", "shell")]
    texts.append("kind: python\n    path: {}")

    async def work(client: "Client") -> None:
        for number, text in enumerate(texts):
            for name in (home / "token", "../home/token", project / ".env", ".env", "mine.py"):
                whole = f"{HEAD}  tool:\n    {text.format(name)}\n"
                file = project / f"old{number}.yaml"
                file.write_text(whole)
                for tool in ("validate", "migrate", "register"):
                    for playbook in (whole, file.name):
                        more = {"migrate": True} if tool == "register" else {}
                        told = str(await answered(client, tool, playbook=playbook, **more))
                        assert "s3cret" not in told, (tool, name, told)

    served(work, folder=project, NOETL_HOME=str(home))


def test_a_pipe_is_no_playbook(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")

    async def work(client: "Client") -> None:
        for tool in ("validate", "migrate", "register"):
            assert "not a file" in await refusal(client, tool, playbook="pipe.yaml")

    served(work, folder=tmp_path, NOETL_HOME=str(tmp_path / "home"))


def test_a_playbook_from_its_text_to_its_log_on_a_home(tmp_path: Path) -> None:
    async def work(client: "Client") -> None:
        kept = await call(client, "register", playbook=TEXT)
        assert (kept["fresh"], kept["entry"]["path"]) == (True, "examples/hello")
        report = await call(client, "run", playbook="examples/hello", workload={"hour": 22})
        assert report["status"] == "completed"
        assert report["ctx"] == {"message": "Good evening, world. It is late."}
        await ended_well(client, report["execution_id"])
        by_file = await call(client, "run", playbook=str(HELLO))
        assert by_file["ctx"] == {"message": "Good morning, world!"}
        assert "noetl catalog" in await refusal(client, "run", playbook="no/such")

    served(work, NOETL_HOME=str(tmp_path))


WAITING = """apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: waiting, path: tests/waiting}
workload: {gate: ""}
workflow:
  - step: start
    tool:
      - wait: {kind: shell, command: 'cat "$GATE"', env: {GATE: "{{ workload.gate }}"}}
"""


def test_a_run_that_the_agent_gives_up_can_be_resumed(tmp_path: Path) -> None:
    file, gate, home = tmp_path / "waiting.yaml", tmp_path / "gate", tmp_path / "home"
    file.write_text(WAITING)
    os.mkfifo(gate)

    held: list[IO[str]] = []

    async def work(client: "Client") -> None:
        arguments = {"playbook": str(file), "workload": {"gate": str(gate)}}
        running = asyncio.ensure_future(client.call_tool("run", arguments))
        # Opening waits for who reads: from here on the task runs.
        held.append(await asyncio.to_thread(gate.open, "w"))
        running.cancel()
        await asyncio.wait([running])
        await call(client, "validate", playbook=TEXT)

    served(work, NOETL_HOME=str(home))
    for _ in asking():  # its process may still be about to leave
        [left] = noetl("list", "--json", NOETL_HOME=str(home)).objects()
        if left["interrupted"]:
            break
    held[0].close()
    gate.unlink()
    gate.write_text("open")
    resumed = noetl("resume", left["execution_id"], "--json", NOETL_HOME=str(home))
    assert (resumed.code, resumed.objects()[0]["status"]) == (0, "completed")


async def ended_well(client: "Client", execution_id: str) -> None:
    standing = await call(client, "status", execution_id=execution_id)
    assert standing["status"] == "completed"
    page = await call(client, "events", execution_id=execution_id, name="step.*", limit=1)
    assert [event["name"] for event in page["events"]] == ["step.scheduled"]
    told = await call(client, "explain", execution_id=execution_id)
    assert told["words"][-1] == "  nothing failed and nothing waits"


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A server that asks for tokens."""
    with node(tmp_path_factory.mktemp("node"), "--auth", workers=1) as started:
        yield started


def test_a_server_is_asked_with_the_rights_of_the_token(up: Node) -> None:
    def token(role: str) -> str:
        answer = up.here("server", "token", "add", role, "--role", role, "--json")
        return str(answer.objects()[0]["token"])

    viewer, author = token("viewer"), token("author")
    begun: list[str] = []

    async def may_all(client: "Client") -> None:
        await call(client, "register", playbook=FAILING.decode())
        report = await call(client, "run", playbook="tests/failing", wait=30)
        assert report["status"] == "failed"
        begun.append(report["execution_id"])
        assert "register it first" in await refusal(client, "run", playbook=str(HELLO))

    async def may_read(client: "Client") -> None:
        told = await call(client, "explain", execution_id=begun[0])
        assert any("exit" in line for line in told["words"])
        assert "role" in await refusal(client, "run", playbook="tests/failing")
        assert "role" in await refusal(client, "register", playbook=TEXT)

    served(may_all, "--server", up.url, NOETL_TOKEN=author)
    served(may_read, "--server", up.url, NOETL_TOKEN=viewer)


def test_without_its_extra_the_command_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "mcp.py").write_text("raise ModuleNotFoundError('mcp')")
    answer = noetl("mcp", PYTHONPATH=str(tmp_path))
    assert (answer.code, answer.out) == (3, "")
    assert needs("`noetl mcp`", "mcp") in answer.err
