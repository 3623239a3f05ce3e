"""The quantum tool on a bench: one event loop, one tool, many operations."""

import asyncio
from collections.abc import Mapping
from itertools import count
from typing import Any

from tests.support.workplace import BenchPlace, call_of

from noetl.kinds.quantum import QuantumInputs
from noetl.messages.outcome import Outcome
from noetl.playbook.model import Timeout
from noetl.tools.quantum.aer import AerProvider
from noetl.tools.quantum.provider import Accepted, JobSpec, JobState
from noetl.tools.quantum.tool import Providers, QuantumTool

BELL = """OPENQASM 2.0;
include "qelib1.inc";
qreg q[2];
creg c[2];
h q[0];
cx q[0], q[1];
measure q -> c;
"""
TURN = """OPENQASM 3.0;
include "stdgates.inc";
input float[64] theta;
qubit[1] q;
bit[1] c;
rx(theta) q[0];
c = measure q;
"""
LONG = BELL.replace("q[2]", "q[24]").replace("c[2]", "c[24]").replace("h q[0]", "h q; t q")
"""With a great number of shots and rounds it runs for minutes."""
ENDED = ("done", "failed", "cancelled", "lost")


def long_circuit() -> str:
    rounds = "t q; h q;\n" * 400
    return LONG.replace("measure", f"{rounds}measure")


class Bench:
    """Calls share the tool, as they do in a worker."""

    def __init__(self, **more: Any) -> None:
        self.place = BenchPlace()
        self.provider = AerProvider(**more)
        self.tool = QuantumTool(Providers({"aer": lambda: self.provider}))
        self._loop = asyncio.new_event_loop()
        self._number = count(1)

    def run(self, *, total: float | None = None, inputs: dict[str, Any], **more: Any) -> Outcome:
        named = {"task_run_id": f"r{next(self._number)}", **more}
        asked = call_of(QuantumInputs(**inputs), timeout=Timeout(total=total), **named)
        return self._loop.run_until_complete(self.tool.call(asked, self.place))

    def submit(self, circuit: str = BELL, **inputs: Any) -> Outcome:
        more = {key: inputs.pop(key) for key in ("resources", "task_run_id") if key in inputs}
        return self.run(inputs={"operation": "submit", "circuit": circuit, **inputs}, **more)

    def job(self, circuit: str = BELL, **inputs: Any) -> str:
        outcome = self.submit(circuit, **inputs)
        assert outcome.error is None, outcome.error
        return str(outcome.result["job"])

    def ask(self, operation: str, job: str, **more: Any) -> Outcome:
        return self.run(inputs={"operation": operation, "job": job}, **more)

    def wait(self, job: str, *statuses: str) -> Outcome:
        """Polls until the job has one of these states; nothing sleeps."""
        while True:
            outcome = self.ask("poll", job)
            assert outcome.block is not None
            if outcome.block["status"] in (statuses or ENDED):
                return outcome
            assert outcome.block["status"] not in ENDED, outcome

    def counts(self, circuit: str = BELL, **inputs: Any) -> dict[str, int]:
        job = self.job(circuit, **inputs)
        self.wait(job)
        outcome = self.ask("fetch", job)
        assert outcome.error is None, outcome.error
        return dict(outcome.result["counts"])

    def error(self, circuit: str = BELL, **inputs: Any) -> dict[str, Any]:
        outcome = self.submit(circuit, **inputs)
        assert outcome.error is not None, outcome
        return outcome.error

    def forget(self, scratch: str) -> None:
        self._loop.run_until_complete(self.tool.forget(scratch))

    def close(self) -> None:
        self._loop.run_until_complete(self.tool.close())
        self._loop.close()


class Elsewhere:
    """A provider of others: its jobs are done at once, and `asleep` never answers."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Any]] = []

    async def submit(self, order: JobSpec, credential: Mapping[str, Any] | None) -> Accepted:
        self.asked.append((order.circuit, credential))
        return Accepted(job="j1", backend="cold", versions={"fridge": "9"})

    async def poll(self, job: str, credential: Mapping[str, Any] | None) -> JobState:
        del credential
        if job == "asleep":
            await asyncio.Event().wait()
        known = job in ("j1", "asleep")
        return JobState(status="done" if known else "lost", message="" if known else "unknown")

    async def fetch(self, job: str, credential: Mapping[str, Any] | None) -> Mapping[str, int]:
        del job, credential
        return {"0": 3, "1": 5}

    async def cancel(self, job: str, credential: Mapping[str, Any] | None) -> JobState:
        return await self.poll(job, credential)

    async def forget(self, job: str) -> None:
        self.asked.append(("forget", job))

    async def close(self) -> None:
        self.asked.append(("close", None))
