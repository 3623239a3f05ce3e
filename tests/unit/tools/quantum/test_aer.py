"""Jobs on the real Aer: their counts, their faults, their end."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from tests.unit.tools.quantum.bench import BELL, TURN, Bench, long_circuit

from noetl.tools.bounds import DEMANDED
from noetl.tools.children import descendants

BIT = BELL.replace("[2]", "[1]").replace("cx q[0], q[1];\n", "")


def test_a_bell_pair_agrees_with_itself(bench: Bench) -> None:
    counts = bench.counts(shots=1000, seed=7)
    assert set(counts) == {"00", "11"}
    assert sum(counts.values()) == 1000


def test_the_same_seed_gives_the_same_counts(bench: Bench) -> None:
    first, again, other = (bench.counts(seed=seed) for seed in (7, 7, 8))
    assert first == again != other


@pytest.mark.parametrize(("theta", "counts"), [(0.0, {"0": 64}), (3.141592653589793, {"1": 64})])
def test_a_parameter_turns_the_qubit(bench: Bench, theta: float, counts: dict[str, int]) -> None:
    assert bench.counts(TURN, parameters={"theta": theta}, shots=64) == counts
    older = BIT.replace("h q[0]", "rx(theta) q[0]")
    assert bench.counts(older, parameters={"theta": theta}, shots=64) == counts


@pytest.mark.parametrize(
    ("backend", "named"),
    [
        (None, "aer_simulator"),
        ("aer_simulator", "aer_simulator"),
        ("statevector", "statevector"),
        ("aer_simulator_stabilizer", "stabilizer"),
        ("matrix_product_state", "matrix_product_state"),
    ],
)
def test_a_backend_is_a_method_of_aer(bench: Bench, backend: str | None, named: str) -> None:
    outcome = bench.submit(backend=backend)
    assert outcome.block is not None
    assert outcome.block["backend"] == named
    assert bench.wait(outcome.result["job"]).result["status"] == "done"


FAULTS: dict[str, tuple[str, dict[str, Any], str, int | None]] = {
    "a missing semicolon": ("OPENQASM 2.0;\nqreg q[2]\nx q[0];", {}, "needed ';'", 3),
    "an unknown gate": (BELL.replace("h q", "foo q"), {}, "'foo' is not defined", 5),
    "an unknown name": (BELL.replace("h q", "rx(a) q"), {}, "'a' is not a parameter", 5),
    "an unknown gate of OpenQASM 3": (TURN.replace("rx(theta)", "foo"), {}, "", 6),
    "a missing semicolon of OpenQASM 3": (TURN.replace("bit[1] c;", "bit[1] c"), {}, "", None),
    "nothing measured": (
        BIT.replace("creg c[1];", "").replace("measure q -> c;", ""),
        {},
        "",
        None,
    ),
    "an unknown backend": (BELL, {"backend": "abacus"}, "it has aer_simulator, statevector", None),
    "too many qubits": (long_circuit().replace("24", "60"), {"backend": "statevector"}, "60", None),
}


@pytest.mark.parametrize("case", FAULTS)
def test_a_circuit_that_cannot_be_run_is_refused_when_submitted(bench: Bench, case: str) -> None:
    circuit, inputs, words, line = FAULTS[case]
    parameters = {"theta": 1.0} if "theta" in circuit else {}
    error = bench.error(circuit, parameters=parameters, **inputs)
    assert (error["kind"], error["retryable"]) == ("quantum", False)
    assert words in error["message"]
    if line is not None:
        assert error["line"] == line
        assert f"line {line}" in error["message"]


def test_faults_leave_the_provider_usable(bench: Bench) -> None:
    bench.error("OPENQASM 2.0;\n!")
    assert sum(bench.counts(shots=10).values()) == 10


def test_a_running_job_is_cancelled(bench: Bench) -> None:
    job = bench.job(long_circuit(), backend="statevector", shots=1)
    bench.wait(job, "running")
    outcome = bench.ask("cancel", job)
    assert outcome.result == {"job": job, "status": "cancelled"}
    again = bench.ask("cancel", job)
    assert again.result == outcome.result
    fetched = bench.ask("fetch", job)
    assert fetched.error is not None
    assert fetched.error["retryable"] is False
    assert "is cancelled and has no counts" in fetched.error["message"]


def test_jobs_beyond_the_processors_are_queued_and_run_in_turn() -> None:
    bench = Bench(most=1)
    try:
        first = bench.job(long_circuit(), backend="statevector", shots=1)
        bench.wait(first, "running")
        second = bench.job(shots=5)
        assert bench.ask("poll", second).result["status"] == "queued"
        early = bench.ask("fetch", second)
        assert early.error is not None
        assert early.error["retryable"] is True
        bench.ask("cancel", first)
        bench.wait(second, "done")
    finally:
        bench.close()


def test_a_queued_job_is_cancelled_before_its_turn() -> None:
    bench = Bench(most=1)
    try:
        first = bench.job(long_circuit(), backend="statevector", shots=1)
        second, third = bench.job(), bench.job()
        assert bench.ask("cancel", second).result["status"] == "cancelled"
        bench.ask("cancel", first)
        assert bench.wait(third).result["status"] == "done"
    finally:
        bench.close()


def test_too_many_open_jobs_are_refused_for_now() -> None:
    bench = Bench(most=1, most_open=1)
    try:
        bench.job(long_circuit(), backend="statevector", shots=1)
        error = bench.error()
        assert (error["kind"], error["retryable"]) == ("quantum", True)
    finally:
        bench.close()


def serving(bench: Bench) -> int:
    """The process that jobs are forked from; where there are namespaces it has gone on in them."""
    process = bench.provider._process
    assert process is not None
    mine = os.readlink("/proc/self/ns/pid")
    inner = [pid for pid in children_of(process.pid) if os.readlink(f"/proc/{pid}/ns/pid") != mine]
    return inner[-1] if inner else process.pid


def children_of(pid: int) -> list[int]:
    with open(f"/proc/{pid}/task/{pid}/children") as listed:
        return [int(word) for word in listed.read().split()]


def everything(pid: int) -> bool:
    """A process that nobody has waited for yet has a name, and no memory."""
    try:
        with open(f"/proc/{pid}/statm") as memory:
            return memory.read().split()[0] != "0"
    except OSError:
        return False


def test_a_crash_ends_one_job_and_no_other(bench: Bench) -> None:
    job = bench.job(long_circuit(), backend="statevector", shots=1)
    (child,) = children_of(serving(bench))
    os.kill(child, signal.SIGSEGV)
    outcome = bench.wait(job)
    assert outcome.error is not None
    assert outcome.error["kind"] == "quantum"
    assert outcome.error["retryable"] is True
    assert "signal 11" in outcome.error["message"]
    assert sum(bench.counts(shots=10).values()) == 10


def test_jobs_are_lost_with_their_process_and_can_be_submitted_again(bench: Bench) -> None:
    done = bench.job(shots=3)
    bench.wait(done)
    job = bench.job(long_circuit(), backend="statevector", shots=1)
    os.kill(serving(bench), signal.SIGKILL)
    outcome = bench.wait(job, "lost")
    assert outcome.error is not None
    assert (outcome.error["kind"], outcome.error["retryable"]) == ("quantum", True)
    assert "submit the circuit again" in outcome.error["message"]
    assert bench.ask("fetch", done).result["shots"] == 3
    assert sum(bench.counts(shots=10).values()) == 10


def test_a_job_of_another_worker_is_lost(bench: Bench) -> None:
    for operation in ("poll", "fetch", "cancel"):
        outcome = bench.ask(operation, "elsewhere")
        assert outcome.error is not None
        assert (outcome.error["kind"], outcome.error["retryable"]) == ("quantum", True)
        assert (outcome.block or {})["status"] == "lost"


def test_a_second_attempt_is_the_same_job(bench: Bench) -> None:
    first, again = (bench.job(task_run_id="r") for _ in range(2))
    other = bench.job(task_run_id="other")
    assert first == again != other


def test_jobs_end_with_their_execution(bench: Bench) -> None:
    job = bench.job(long_circuit(), backend="statevector", shots=1)
    pid = serving(bench)
    bench.forget("e2")
    assert bench.ask("poll", job).error is None
    bench.forget("e1")
    assert (bench.ask("poll", job).block or {})["status"] == "lost"
    bench.counts(shots=1)  # by now the word about the first has come and gone
    assert len(children_of(pid)) <= 1


def test_closing_leaves_no_process() -> None:
    bench = Bench()
    bench.job(long_circuit(), backend="statevector", shots=1)
    pid = serving(bench)
    job = children_of(pid)[0]
    bench.close()
    while everything(pid) or everything(job):  # they were killed; the kernel takes its time
        os.sched_yield()


def test_its_processes_are_confined_as_other_children_are(tmp_path: Path) -> None:
    made = Bench(namespaces="demand", private=[str(tmp_path)])
    try:
        made.wait(made.job(long_circuit(), backend="statevector", shots=1), "running")
        process = made.provider._process
        assert process is not None
        spaces = {os.readlink(f"/proc/{pid}/ns/mnt") for pid in descendants(process.pid)}
        assert spaces
        assert os.readlink("/proc/self/ns/mnt") not in spaces
    finally:
        made.close()


def test_what_must_be_confined_and_cannot_is_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = "import os, sys; sys.stdin.readline(); os._exit(97)"
    monkeypatch.setattr("noetl.tools.quantum.aer.PROGRAM", ends)
    made = Bench(namespaces="demand")
    try:
        assert made.error()["message"] == DEMANDED
    finally:
        made.close()
