"""How calls share the children: bounded, in turn, and none is left when the tool closes."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.tools.python.bench import Bench, gone

from noetl.messages.reference import Reference

MEET = """
import os, socket
with socket.socket(socket.AF_UNIX) as door:
    door.connect(path)
    door.recv(1)
result = os.getpid()
"""


@pytest.fixture
def one(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path, children=1)
    yield bench
    bench.close()


class Door:
    """Code comes in and waits; the test counts those inside and lets them out."""

    def __init__(self, folder: Path) -> None:
        self.path = str(folder / "door")
        self.inside: asyncio.Queue[asyncio.StreamWriter] = asyncio.Queue()
        self._guests: list[asyncio.StreamWriter] = []

    async def open(self) -> None:
        self._server = await asyncio.start_unix_server(self._enter, self.path)

    async def _enter(self, _: asyncio.StreamReader, guest: asyncio.StreamWriter) -> None:
        self._guests.append(guest)
        await self.inside.put(guest)

    async def let_out(self) -> None:
        guest = await self.inside.get()
        guest.write(b".")
        await guest.drain()

    async def close(self) -> None:
        for guest in self._guests:
            guest.close()
        self._server.close()
        await self._server.wait_closed()


def test_calls_run_at_once_up_to_the_bound(bench: Bench, tmp_path: Path) -> None:
    async def meet() -> list[int]:
        door = Door(tmp_path)
        await door.open()
        calls = [asyncio.ensure_future(bench.call(MEET, path=door.path)) for _ in range(4)]
        while door.inside.qsize() < 2:
            await asyncio.sleep(0)
        for _ in calls:
            await door.let_out()
        outcomes = await asyncio.gather(*calls)
        await door.close()
        return [int(outcome.result) for outcome in outcomes]

    # Four calls were inside two at a time, since there are two children and no more.
    assert len({*bench.wait(meet())}) == 2


def test_calls_without_a_child_wait_their_turn(one: Bench) -> None:
    async def all_at_once() -> list[object]:
        calls = [one.call(f"result = {n}", execution=f"e{n % 3}") for n in range(30)]
        return [outcome.result for outcome in await asyncio.gather(*calls)]

    assert one.wait(all_at_once()) == list(range(30))


def test_a_call_may_be_cancelled_while_it_waits(one: Bench, tmp_path: Path) -> None:
    async def cancel() -> list[object]:
        door = Door(tmp_path)
        await door.open()
        first = asyncio.ensure_future(one.call(MEET, path=door.path))
        guest = await door.inside.get()
        waiting = [asyncio.ensure_future(one.call(f"result = {n}")) for n in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        guest.write(b".")
        outcomes = await asyncio.gather(first, *waiting, return_exceptions=True)
        await door.close()
        return [getattr(outcome, "result", type(outcome)) for outcome in outcomes[1:]]

    assert one.wait(cancel()) == [asyncio.CancelledError, 1, 2]


def test_one_child_serves_one_execution_after_the_other(one: Bench) -> None:
    code = "import os\nresult = os.getpid()"
    first, again, other = (one.result(code, execution=name) for name in ("e1", "e1", "e2"))
    assert first == again != other
    assert gone(first)


def test_a_child_that_died_while_idle_is_not_asked(bench: Bench) -> None:
    bench.result("import os\nresult = os.getpid()")
    code = "import os, subprocess\nsubprocess.Popen(['sh', '-c', f'kill -9 {os.getpid()}'])"
    bench.run(code)
    assert [bench.result("result = 1") for _ in range(3)] == [1, 1, 1]


def test_forgetting_an_execution_ends_its_children(bench: Bench) -> None:
    first = bench.result("import os\nresult = os.getpid()")
    bench.wait(bench.tool.forget("some step run"))
    assert bench.result("import os\nresult = os.getpid()") == first
    bench.wait(bench.tool.forget("e1"))
    assert gone(first)


def test_closing_ends_all(bench: Bench) -> None:
    async def close() -> list[int]:
        codes = ["import os\nresult = os.getpid()"] * 2
        outcomes = await asyncio.gather(*map(bench.call, codes))
        running = asyncio.ensure_future(bench.call("print('in', flush=True)\nwhile True: pass"))
        while not bench.lines:
            await asyncio.sleep(0)
        await bench.tool.close()
        outcome = await running
        assert (outcome.block or {})["exception_type"] == "ChildDied"
        return [int(outcome.result) for outcome in outcomes]

    assert [gone(pid) for pid in bench.wait(close())] == [True, True]


def test_who_waits_when_the_tool_closes_is_told(one: Bench) -> None:
    async def close() -> list[str]:
        codes = ["print('in', flush=True)\nwhile True: pass", "result = 1", "result = 2"]
        calls = [asyncio.ensure_future(one.call(code)) for code in codes]
        while not one.lines:
            await asyncio.sleep(0)
        await one.tool.close()
        outcomes = [*await asyncio.gather(*calls), await one.call("result = 3")]
        return [(outcome.error or {})["message"] for outcome in outcomes[1:]]

    told = "the child process could not be started: the worker is closing"
    assert one.wait(close()) == [told] * 3


def test_warm_children_wait_for_the_first_call(bench: Bench) -> None:
    async def first() -> object:
        bench.tool.warm()
        return (await bench.call("result = 1")).result

    assert bench.wait(first()) == 1


def test_large_args_and_results_pass(bench: Bench) -> None:
    text = "x" * 5_000_000
    assert bench.result("result = text + text", text=text) == text + text


def test_a_result_over_the_inline_limit_goes_to_the_store(bench: Bench) -> None:
    reference = bench.result("result = [0] * n", n=100, max_inline=200)
    assert isinstance(reference, Reference)
    assert bench.place.results.value(reference) == [0] * 100
    assert bench.result("result = [0] * n", n=99, max_inline=199) == [0] * 99


def test_a_store_without_room_is_told(bench: Bench) -> None:
    bench.place.results.full = True
    error = bench.error("result = [0] * 100", max_inline=100)
    assert (error["kind"], error["retryable"]) == ("internal", True)
    assert "No space left" in error["message"]


FORGED = """
import os, stat
for number in range(3, 64):
    try:
        if stat.S_ISSOCK(os.fstat(number).st_mode):
            os.write(number, len(body).to_bytes(4, "big") + tag.encode() + body.encode())
    except OSError:
        pass
os._exit(0)
"""


@pytest.mark.parametrize(
    ("tag", "body", "kind"),
    [
        ("A", "[1", "result"),
        ("A", "[" * 5000, "result"),
        ("F", "[]", "result"),
        ("F", '{"kind": 1}', "result"),
        ("F", '{"kind": "python", "message": "mine"}', "python"),
    ],
)
def test_an_answer_that_the_code_forged_harms_nobody(
    bench: Bench, tag: str, body: str, kind: str
) -> None:
    assert bench.error(FORGED, tag=tag, body=body)["kind"] == kind
    assert bench.result("result = 1", execution="e2") == 1


def test_a_result_beyond_the_limit_is_refused(bench: Bench) -> None:
    error = bench.error("result = 'x' * (256 * 1024 * 1024)")
    assert error == {
        "kind": "limit",
        "message": "the result is 268435458 bytes of JSON, more than 268435456; "
        "write it to a file or a store and return where it is",
        "retryable": False,
    }
