"""TOOL-4 and what OUT asks of `quantum`, on the real Aer and in a whole execution."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.house.tree import ROOT
from tests.system.program import noetl
from tests.unit.tools.quantum.bench import BELL, TURN, Bench

EXAMPLE = next((ROOT / "examples").glob("*-quantum")) / "playbook.yaml"


@pytest.fixture
def bench() -> Iterator[Bench]:
    bench = Bench()
    yield bench
    bench.close()


@pytest.mark.rule("TOOL-4")
@pytest.mark.parametrize("circuit", [BELL, TURN], ids=["OpenQASM 2", "OpenQASM 3"])
def test_submit_poll_and_fetch_are_separate_operations(bench: Bench, circuit: str) -> None:
    parameters = {"theta": 0.5} if "theta" in circuit else {}
    job = bench.job(circuit, parameters=parameters, shots=100)
    assert bench.wait(job).result == {"job": job, "status": "done"}
    fetched = bench.ask("fetch", job).result
    assert (fetched["job"], fetched["shots"]) == (job, 100)
    assert sum(fetched["counts"].values()) == 100


DEFINED = """OPENQASM 3.0;
include "stdgates.inc";
gate twice a { x a; x a; }
qubit[1] q;
bit[1] c;
twice q[0];
x q[0];
c[0] = measure q[0];
"""


@pytest.mark.rule("TOOL-4")
def test_all_of_openqasm_3_is_read(bench: Bench) -> None:
    """A gate of one's own: what Qiskit alone does not read."""
    job = bench.job(DEFINED, shots=8)
    assert bench.wait(job).result == {"job": job, "status": "done"}
    assert bench.ask("fetch", job).result["counts"] == {"1": 8}


@pytest.mark.rule("TOOL-4", "OUT-2")
@pytest.mark.parametrize("operation", ["submit", "fetch"])
def test_the_outcome_says_how_the_counts_came_about(bench: Bench, operation: str) -> None:
    inputs: dict[str, Any] = {"parameters": {"theta": 0.5}, "shots": 10, "seed": 3}
    submitted = bench.submit(TURN, backend="statevector", **inputs)
    job = submitted.result["job"]
    bench.wait(job)
    outcome = submitted if operation == "submit" else bench.ask("fetch", job)
    assert outcome.block is not None
    versions, digest = outcome.block.pop("versions"), outcome.block.pop("digest")
    assert set(versions) == {"qiskit", "qiskit-aer"}
    assert digest.startswith("sha256:")
    assert outcome.block == {
        "operation": operation,
        "provider": "aer",
        "job": job,
        "status": "queued" if operation == "submit" else "done",
        "backend": "statevector",
        "circuit": TURN,
        **inputs,
    }


@pytest.mark.rule("TOOL-4")
def test_the_digest_names_the_experiment(bench: Bench) -> None:
    asked: list[dict[str, Any]] = [
        {"seed": 1},
        {"seed": 1},
        {"seed": 2},
        {"seed": 1, "shots": 5},
        {"seed": 1, "backend": "stabilizer"},
    ]
    first, again, *others = [(bench.submit(**one).block or {})["digest"] for one in asked]
    assert first == again
    assert len({first, *others}) == 1 + len(others)


@pytest.mark.rule("TOOL-4")
def test_a_seed_that_nobody_gave_is_told_so_that_the_counts_repeat(bench: Bench) -> None:
    outcome = bench.submit(shots=100)
    job, seed = outcome.result["job"], (outcome.block or {})["seed"]
    bench.wait(job)
    assert bench.counts(shots=100, seed=seed) == bench.ask("fetch", job).result["counts"]


@pytest.mark.rule("OUT-4")
def test_a_circuit_that_does_not_parse_is_an_error_with_its_line(bench: Bench) -> None:
    outcome = bench.submit(BELL.replace("cx q[0]", "cx q[0"))
    assert outcome.error is not None
    assert (outcome.error["kind"], outcome.error["retryable"]) == ("quantum", False)
    assert outcome.error["line"] == 6
    assert "does not parse (line 6, column" in outcome.error["message"]


@pytest.mark.rule("TASK-7")
def test_a_timeout_ends_a_submission(bench: Bench) -> None:
    """The simulator itself takes longer than this to come to life."""
    inputs = {"operation": "submit", "circuit": BELL}
    outcome = bench.run(inputs=inputs, total=0.001, task_run_id="late")
    assert outcome.error is not None
    assert (outcome.error["kind"], outcome.error["retryable"]) == ("timeout", True)
    assert sum(bench.counts(shots=10).values()) == 10


@pytest.mark.rule("TOOL-4", "RES-1")
def test_a_sweep_polls_by_policy_and_its_log_holds_provenance_and_references(
    tmp_path: Path,
) -> None:
    home = str(tmp_path / "home")
    done = noetl("run", str(EXAMPLE), "--json", NOETL_HOME=home)
    report = json.loads(done.out)
    assert report["status"] == "completed"
    lines = noetl("events", report["execution_id"], "--json", NOETL_HOME=home).out.splitlines()
    tasks = [event["data"] for event in map(json.loads, lines) if event["name"] == "task.done"]
    polls = [task for task in tasks if task["task"] == "poll"]
    jumps = [task for task in polls if task.get("do") == "jump"]
    assert len(polls) - len(jumps) == 5
    fetched = [task["outcome"] for task in tasks if task["task"] == "fetch"]
    angles = sorted(outcome["quantum"]["parameters"]["theta"] for outcome in fetched)
    assert [round(angle, 2) for angle in angles] == [0, 0.52, 1.57, 2.62, 3.14]
    assert all("$ref" in outcome["result"] for outcome in fetched)
    assert all(outcome["quantum"]["circuit"].startswith("OPENQASM 3") for outcome in fetched)
    assert len({outcome["quantum"]["digest"] for outcome in fetched}) == 5
    verified = noetl("replay", report["execution_id"], "--verify", NOETL_HOME=home)
    assert verified.code == 0
