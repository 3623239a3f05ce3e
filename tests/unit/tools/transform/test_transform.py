"""Values from values: what is rendered already, and jq programs, good, bad and endless."""

import asyncio
import importlib.util
from typing import Any

import pytest
from tests.support.workplace import BenchPlace, call_of

from noetl.extras import needs
from noetl.kinds.flow import TransformInputs
from noetl.masking import KNOWN
from noetl.messages.outcome import Outcome
from noetl.messages.reference import Reference
from noetl.playbook.model import Timeout
from noetl.tools.framed_socket import PeerGone
from noetl.tools.transform.tool import TransformChild, TransformTool, jq_module


def run(*inputs: TransformInputs, place: BenchPlace | None = None, **more: Any) -> list[Outcome]:
    """One call after the other, with one tool."""

    async def calls() -> list[Outcome]:
        tool = TransformTool()
        try:
            at = place or BenchPlace()
            return [await tool.call(call_of(one, **more), at) for one in inputs]
        finally:
            await tool.close()

    return asyncio.run(calls())


def jq(program: str, given: Any = None, **more: Any) -> Outcome:
    return run(TransformInputs(jq=program, input=given), **more)[0]


def error(program: str, given: Any = None, **more: Any) -> dict[str, Any]:
    outcome = jq(program, given, **more)
    assert outcome.error is not None, outcome
    assert (outcome.block, outcome.result) == ({"outputs": 0}, None)
    return outcome.error


@pytest.mark.parametrize("value", [None, 0, "", "{{ 7*7 }}", [1, {"a": None}]])
def test_a_value_is_its_own_result(value: Any) -> None:
    (outcome,) = run(TransformInputs(value=value))
    assert (outcome.status, outcome.result, outcome.block) == ("ok", value, {"outputs": 1})


@pytest.mark.parametrize(
    ("program", "given", "result", "outputs"),
    [
        (".", {"a": [1, 2.5, None, "ü\n☃"]}, {"a": [1, 2.5, None, "ü\n☃"]}, 1),
        (".[] | .name", [{"name": "a"}, {"name": "b"}], ["a", "b"], 2),
        ("[.[] | .name]", [{"name": "a"}], ["a"], 1),
        (".[]", [7], 7, 1),
        ("empty", 1, None, 0),
        ("group_by(.k) | map({(.[0].k): length}) | add", [{"k": "x"}, {"k": "x"}], {"x": 2}, 1),
        ("nan", None, None, 1),
        ('"\\(. + 1)"', 1, "2", 1),
    ],
)
def test_a_program(program: str, given: Any, result: Any, outputs: int) -> None:
    outcome = jq(program, given)
    assert (outcome.status, outcome.error) == ("ok", None)
    assert (outcome.result, outcome.block) == (result, {"outputs": outputs})


@pytest.mark.parametrize(
    ("program", "given", "kind", "message"),
    [
        (".a", 1, "template", 'jq: Cannot index number with string ("a")'),
        ('error("no: \\(.)")', 1, "template", "jq: no: 1"),
        (".[", 1, "input", "jq: syntax error"),
        ("nothing(1)", 1, "input", "jq: nothing/1 is not defined"),
        ("input", 1, "template", "jq: break"),
    ],
)
def test_a_program_without_a_result(program: str, given: Any, kind: str, message: str) -> None:
    told = error(program, given)
    assert (told["kind"], told["retryable"]) == (kind, False)
    assert told["message"].startswith(message)


def test_a_program_sees_no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKER_TOKEN", "planted")
    assert jq("$ENV | keys").result == ["LANG", "PATH"]
    assert jq("env | keys").result == ["LANG", "PATH"]


@pytest.mark.parametrize("directive", ["import", "include"])
def test_a_program_opens_no_file(directive: str, tmp_path: Any) -> None:
    (tmp_path / "secret.json").write_text('"planted"')
    (tmp_path / "secret.jq").write_text("def planted: 1;")
    names = {"import": "as $s", "include": ""}
    told = error(f'{directive} "secret" {names[directive]} {{search: "{tmp_path}"}}; .')
    assert told["kind"] == "input"
    assert "planted" not in told["message"]


ENDLESS = "def f: f; f"


def test_an_endless_program_is_ended() -> None:
    told = error(ENDLESS, timeout=Timeout(total=0.2))
    assert told == {
        "kind": "timeout",
        "message": "the jq program did not end within 0.2 s",
        "retryable": True,
    }


def test_a_program_that_needs_much_memory_is_ended_and_the_next_one_runs() -> None:
    greedy = TransformInputs(jq="[range(100000000)] | length")
    first, second = run(greedy, TransformInputs(jq="1 + 1"), resources={"memory": "64Mi"})
    assert first.error is not None
    assert first.error["kind"] == "limit"
    assert first.error["message"].startswith("the jq program needs more memory than the 67108864")
    assert second.result == 2


def test_memory_that_is_no_amount() -> None:
    told = error(".", resources={"memory": "much"})
    assert told["kind"] == "input"


def test_many_programs_in_one_child() -> None:
    inputs = [TransformInputs(jq=f". + {n}", input=1) for n in range(130)]
    assert [outcome.result for outcome in run(*inputs)] == [n + 1 for n in range(130)]


def test_a_large_result_goes_to_the_store() -> None:
    place = BenchPlace()
    outcome = jq("[range(1000)]", place=place, max_inline=100)
    assert isinstance(outcome.result, Reference)
    assert asyncio.run(place.results.fetch(outcome.result)) == list(range(1000))


def test_a_stored_input_is_loaded() -> None:
    place = BenchPlace()
    reference = asyncio.run(place.results.put("e1", b'{"a": [1, 2]}'))
    assert jq(".a | add", reference, place=place).result == 3


def test_a_stored_input_that_is_lost() -> None:
    place = BenchPlace()
    reference = asyncio.run(place.results.put("e1", b"[1]"))
    asyncio.run(place.results.remove("e1"))
    assert error(".", reference, place=place)["kind"] == "result"


def test_large_inputs_and_results_pass_the_connection() -> None:
    text = "x" * 5_000_000
    assert jq(". + .", text, max_inline=1 << 30).result == text + text


def test_a_missing_extra_names_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    assert error(".") == {
        "kind": "not_found",
        "message": needs("'jq'", "transform"),
        "retryable": False,
    }
    (outcome,) = run(TransformInputs(value=1))
    assert outcome.status == "ok"


@pytest.mark.rule("KEY-2")
@pytest.mark.parametrize(
    ("secret", "says"),
    [
        ("unrelated", "cannot be parsed as a number"),
        ("begins here and is far too long to be quoted whole", "the reason is not shown"),
    ],
)
def test_what_jq_quotes_in_part_shows_no_part_of_a_secret(secret: str, says: str) -> None:
    KNOWN.add(secret)
    told = error("tonumber", "begins here and is far too long to be quoted whole")
    assert says in told["message"]
    assert ("begins" in told["message"]) == (secret == "unrelated")


def test_a_limit_of_processor_time_ends_a_program() -> None:
    """A net below the timeout: it holds even where the worker that should end it is stopped."""

    async def ask() -> None:
        child = TransformChild(jq_module())
        try:
            await child.ask((2**31, 1, "def f: f; f", "null"))
        finally:
            child.end()

    with pytest.raises(PeerGone):
        asyncio.run(ask())
