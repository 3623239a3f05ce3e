"""What the tool makes of a provider's words, whoever provides."""

import asyncio
import importlib.metadata
import importlib.util
from typing import Any

import pytest
from tests.support.workplace import BenchPlace, call_of
from tests.unit.tools.quantum.bench import BELL, Bench, Elsewhere

from noetl.extras import command_for
from noetl.kinds.quantum import QuantumInputs
from noetl.masking import KNOWN
from noetl.messages.outcome import Outcome
from noetl.messages.reference import Reference
from noetl.tools.quantum.inside.reading import PARTLY, Unreadable, misplaced, read_3, unreadable
from noetl.tools.quantum.tool import Providers, QuantumTool


def asked(elsewhere: Elsewhere, place: BenchPlace | None = None, **inputs: Any) -> Outcome:
    async def call() -> Outcome:
        tool = QuantumTool(Providers({"elsewhere": lambda: elsewhere}))
        given = QuantumInputs(provider=inputs.pop("provider", "elsewhere"), **inputs)
        outcome = await tool.call(call_of(given), place or BenchPlace())
        await tool.forget("e1")
        await tool.close()
        return outcome

    return asyncio.run(call())


def test_a_credential_goes_to_the_provider_and_nowhere_else() -> None:
    provider, place = Elsewhere(), BenchPlace(cloud={"token": "t-123456"})
    outcome = asked(provider, place, operation="submit", circuit=BELL, auth="cloud")
    assert provider.asked[0] == (BELL, {"token": "t-123456"})
    assert "t-123456" not in str(outcome)


def test_the_provider_hears_when_the_execution_is_over() -> None:
    provider = Elsewhere()
    asked(provider, operation="submit", circuit=BELL)
    assert provider.asked[1:] == [("forget", "j1"), ("close", None)]


def test_a_missing_credential_is_an_error_of_authentication() -> None:
    error = asked(Elsewhere(), operation="submit", circuit=BELL, auth="cloud").error
    assert error is not None
    assert error["kind"] == "auth"


INPUTS: dict[str, tuple[dict[str, Any], str]] = {
    "no circuit": ({"operation": "submit"}, "needs 'circuit' to submit"),
    "no job to poll": ({"operation": "poll"}, "needs 'job' to poll"),
    "no job to fetch": ({"operation": "fetch"}, "needs 'job' to fetch"),
    "no job to cancel": ({"operation": "cancel"}, "needs 'job' to cancel"),
}


@pytest.mark.parametrize("case", INPUTS)
def test_an_input_that_is_missing_is_named(case: str) -> None:
    inputs, words = INPUTS[case]
    error = asked(Elsewhere(), **inputs).error
    assert error is not None
    assert (error["kind"], error["retryable"]) == ("input", False)
    assert words in error["message"]


@pytest.mark.parametrize("resources", [{"cpu": 0}, {"cpu": True}, {"cpu": "2"}, {"memory": "much"}])
def test_resources_are_checked(bench: Bench, resources: dict[str, Any]) -> None:
    error = bench.error(resources=resources)
    assert error["kind"] == "input"
    assert f"spec.resources.{next(iter(resources))}" in error["message"]


def test_memory_bounds_a_job(bench: Bench) -> None:
    wide = BELL.replace("[2]", "[26]").replace("h q[0]", "h q; t q")
    inputs: dict[str, Any] = {"backend": "statevector", "resources": {"memory": "64Mi"}}
    outcome = bench.submit(wide, **inputs)
    if outcome.error is None:
        outcome = bench.wait(outcome.result["job"])
    assert outcome.error is not None
    assert outcome.error["kind"] == "quantum"


def test_an_unknown_provider_names_those_there_are() -> None:
    error = asked(Elsewhere(), operation="poll", job="1", provider="nowhere").error
    assert error is not None
    assert error["kind"] == "not_found"
    assert "there is elsewhere" in error["message"]
    assert "noetl.quantum" in error["message"]


def entry(value: str) -> importlib.metadata.EntryPoints:
    point = importlib.metadata.EntryPoint("far", value, "noetl.quantum")
    return importlib.metadata.EntryPoints([point])


def test_a_provider_comes_from_an_installed_package(monkeypatch: pytest.MonkeyPatch) -> None:
    named = "tests.unit.tools.quantum.bench:Elsewhere"
    monkeypatch.setattr("noetl.tools.quantum.tool.entry_points", lambda **_: entry(named))
    assert asked(Elsewhere(), operation="poll", job="j1", provider="far").result == {
        "job": "j1",
        "status": "done",
    }


def test_a_provider_that_cannot_be_loaded_is_an_outcome(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("noetl.tools.quantum.tool.entry_points", lambda **_: entry("no:x"))
    error = asked(Elsewhere(), operation="poll", job="j1", provider="far").error
    assert error is not None
    assert (error["kind"], error["retryable"]) == ("not_found", False)
    assert "the quantum provider 'far' cannot be used: ModuleNotFoundError" in error["message"]


def test_a_missing_extra_names_the_command(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "qiskit_aer" else found(name)
    )
    error = bench.error()
    assert error["kind"] == "not_found"
    assert command_for("quantum") in error["message"]


def test_many_counts_go_to_the_result_store(bench: Bench) -> None:
    job = bench.job(shots=50)
    bench.wait(job)
    outcome = bench.ask("fetch", job, max_inline=20)
    assert isinstance(outcome.result, Reference)
    stored = bench.place.results.value(outcome.result)
    assert stored["shots"] == sum(stored["counts"].values()) == 50


def test_qiskit_alone_says_what_the_whole_language_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("noetl.tools.quantum.inside.reading.WHOLE_LANGUAGE", "no_such_importer")
    circuit = "OPENQASM 3.0;\nqubit q;\nbit c;\nreset q;\nc = measure q;"
    with pytest.raises(Unreadable) as fault:
        read_3(circuit, lambda: "")
    assert str(fault.value).endswith(PARTLY)


PLACES: dict[str, tuple[str, str, int | None, int | None]] = {
    "OpenQASM 2": ("<input>:3,0: needed ';'", "needed ';'", 3, 1),
    "OpenQASM 3": ("9,12: gate 'foo' is not defined.", "gate 'foo' is not defined.", 9, 13),
    "Qiskit's own": ("Error: UndefGateError\n  [no file:5:1]\n", "UndefGateError", 5, 2),
    "without a place": ("something else\nand more", "something else", None, None),
}


@pytest.mark.parametrize("case", PLACES)
def test_every_importer_says_where_in_its_own_way(case: str) -> None:
    said, message, line, column = PLACES[case]
    fault = unreadable(said)
    assert (str(fault), fault.line, fault.column) == (message, line, column)


class Token:
    line, column, text = 7, 0, "g"


class Mismatch(Exception):
    offendingToken = Token()


@pytest.mark.parametrize(
    ("cause", "message", "line"),
    [
        (ValueError(Mismatch()), "unexpected 'g'", 7),
        (ValueError("x"), "RuntimeError", None),
        (None, "RuntimeError", None),
    ],
)
def test_an_error_without_words_has_a_cause(
    cause: Exception | None, message: str, line: int | None
) -> None:
    fault = RuntimeError()
    fault.__cause__ = cause
    found = misplaced(fault)
    assert (str(found), found.line) == (message, line)


@pytest.mark.rule("KEY-2")
@pytest.mark.parametrize(
    ("secret", "says"),
    [
        ("unrelated", "the circuit includes 'planted.inc' (line 2); only"),
        ('planted.inc";', "the circuit was rejected (line 2); the reason is not shown"),
    ],
)
def test_what_a_parser_quotes_shows_no_part_of_a_secret(secret: str, says: str) -> None:
    KNOWN.add(secret)
    circuit = BELL.replace("qelib1.inc", "planted.inc")
    outcome = asked(Elsewhere(), operation="submit", circuit=circuit)
    assert outcome.error is not None
    assert outcome.error["message"].startswith(says)
    assert (outcome.error["kind"], outcome.error["line"]) == ("quantum", 2)
