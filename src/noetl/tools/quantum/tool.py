"""Runs circuits for tasks of kind `quantum`: submit, poll, fetch and cancel (TOOL-4)."""

import asyncio
import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.metadata import entry_points
from typing import Any

import msgspec

from noetl.kinds.quantum import QuantumInputs
from noetl.masking import KNOWN
from noetl.messages.outcome import Outcome, failed, ok
from noetl.tools.bounds import Namespaces
from noetl.tools.frame import FramedTool
from noetl.tools.quantum.aer import AerProvider
from noetl.tools.quantum.circuits import bound
from noetl.tools.quantum.provider import Accepted, JobSpec, JobState, Provider
from noetl.tools.refusal import Refusal
from noetl.tools.resources import cpu_of, memory_of
from noetl.tools.spill import keep
from noetl.tools.tool import ToolCall, Workplace

SEEDS = 2**31
AGAIN = "submit the circuit again, by a policy that jumps to the submitting task"

WHOLE = ("submit", "fetch")
"""Operations whose block holds the text of the circuit: it is not repeated for each poll."""
UNKNOWN = dict.fromkeys(("circuit", "parameters", "shots", "seed", "versions", "digest"))

Credential = Mapping[str, Any] | None


class KnownJob(msgspec.Struct, frozen=True):
    """A submitted job: whose it is, and how its result comes about."""

    execution_id: str
    provenance: dict[str, Any]


class QuantumTool(FramedTool):
    """Jobs outlive calls: they are kept until their execution is over."""

    keeps_time = True

    def __init__(
        self,
        providers: "Providers | None" = None,
        *,
        namespaces: Namespaces = "auto",
        private: Sequence[str] = (),
    ) -> None:
        aer = partial(AerProvider, namespaces=namespaces, private=private)
        self._providers = providers or Providers({"aer": aer})
        self._jobs: dict[tuple[str, str], KnownJob] = {}

    async def call(self, call: ToolCall[QuantumInputs], workplace: Workplace) -> Outcome:
        return unquoted(await super().call(call, workplace), call.inputs.circuit)

    async def forget(self, scratch: str) -> None:
        """An execution that is over has no use for its jobs."""
        over = [key for key, known in self._jobs.items() if known.execution_id == scratch]
        for key in over:
            provider, job = key
            del self._jobs[key]
            await self._providers.find(provider).forget(job)

    async def close(self) -> None:
        self._jobs.clear()
        await self._providers.close()

    def _failure(self, call: ToolCall[QuantumInputs], fault: Exception) -> Outcome | None:
        if not isinstance(fault, TimeoutError):
            return None
        says = f"the provider did not answer within {call.timeout.total:g} s"
        return failed("timeout", says, retryable=True)

    def _block(self, call: ToolCall[QuantumInputs]) -> dict[str, Any]:
        return self._told(call.inputs, call.inputs.job, None)

    def _told(self, inputs: QuantumInputs, job: str | None, status: str | None) -> dict[str, Any]:
        """`outcome.quantum` (OUT-2): every field in every outcome, null where it is not known."""
        known = self._jobs.get((inputs.provider, job or ""))
        provenance = known.provenance if known else {"backend": inputs.backend, **UNKNOWN}
        return {
            "operation": inputs.operation,
            "provider": inputs.provider,
            "job": job,
            "status": status,
            **provenance,
            "circuit": provenance["circuit"] if inputs.operation in WHOLE else None,
        }

    async def _run(self, call: ToolCall[QuantumInputs], workplace: Workplace) -> Outcome:
        inputs = call.inputs
        async with asyncio.timeout(call.timeout.total):
            provider = self._providers.find(inputs.provider)
            credential = await workplace.unlock(inputs.auth) if inputs.auth else None
            if inputs.operation == "submit":
                return await self._submit(call, provider, credential)
            job = job_of(inputs)
            ask = provider.cancel if inputs.operation == "cancel" else provider.poll
            state = await ask(job, credential)
            fetching = inputs.operation == "fetch"
            if not fetching or state.status != "done":
                outcome = told(job, state, fetching=fetching)
            else:
                counts = await provider.fetch(job, credential)
                result = {"job": job, "shots": sum(counts.values()), "counts": counts}
                outcome = ok(await fitted(result, call, workplace))
            block = self._told(inputs, job, state.status)
            return msgspec.structs.replace(outcome, block=block)

    async def _submit(
        self, call: ToolCall[QuantumInputs], provider: Provider, credential: Credential
    ) -> Outcome:
        inputs = call.inputs
        seed = seed_of(call) if inputs.seed is None else inputs.seed
        accepted = await provider.submit(order_of(call, seed), credential)
        known = KnownJob(call.execution_id, provenance_of(inputs, seed, accepted))
        self._jobs[inputs.provider, accepted.job] = known
        block = self._told(inputs, accepted.job, "queued")
        return ok({"job": accepted.job, "status": "queued"}, block=block)


def provenance_of(inputs: QuantumInputs, seed: int, accepted: Accepted) -> dict[str, Any]:
    """What makes a result of chance worth something: how it came about (TOOL-4)."""
    how = {
        "backend": accepted.backend,
        "circuit": inputs.circuit,
        "parameters": inputs.parameters,
        "shots": inputs.shots,
        "seed": seed,
    }
    # The same for the same experiment, whatever software ran it.
    what = [
        inputs.provider,
        inputs.circuit,
        inputs.parameters,
        accepted.backend,
        inputs.shots,
        seed,
    ]
    digest = hashlib.sha256(msgspec.json.encode(what, order="sorted")).hexdigest()
    return {**how, "versions": accepted.versions, "digest": f"sha256:{digest}"}


def unquoted(outcome: Outcome, circuit: str | None) -> Outcome:
    """KEY-2: parsers quote words of a circuit, and a word of a secret is not known as one."""
    if outcome.error is None or circuit is None or not KNOWN.holds(circuit):
        return outcome
    line = outcome.error.get("line")
    place = "" if line is None else f" (line {line})"
    says = f"the circuit was rejected{place}; the reason is not shown because it contains a secret"
    return msgspec.structs.replace(outcome, error={**outcome.error, "message": says})


def seed_of(call: ToolCall[Any]) -> int:
    """The same on every attempt and redelivery, so that they are one submission."""
    return int.from_bytes(hashlib.sha256(call.idempotency_key.encode()).digest()[:8]) % SEEDS


def job_of(inputs: QuantumInputs) -> str:
    if inputs.job is None:
        says = f"quantum needs 'job' to {inputs.operation}; it is in the result of the submission"
        raise Refusal("input", says)
    return inputs.job


def order_of(call: ToolCall[QuantumInputs], seed: int) -> JobSpec:
    inputs = call.inputs
    if inputs.circuit is None:
        raise Refusal("input", "quantum needs 'circuit' to submit: a text in OpenQASM 2 or 3")
    cpu = cpu_of(call.resources, "a whole number such as 2", int)
    return JobSpec(
        key=call.idempotency_key,
        circuit=bound(inputs.circuit, inputs.parameters),
        shots=inputs.shots,
        seed=seed,
        backend=inputs.backend,
        cpu=cpu or 1,
        memory=memory_of(call.resources),
    )


def told(job: str, state: JobState, *, fetching: bool = False) -> Outcome:
    """A job that runs, is done or was cancelled is an answer, but nothing that can be fetched."""
    if state.status == "failed":
        says = f"job '{job}' failed: {state.message}"
        return failed("quantum", says, retryable=state.retryable)
    if state.status == "lost":
        says = f"job '{job}' is lost: {state.message}; {AGAIN}"
        return failed("quantum", says, retryable=True)
    if not fetching:
        return ok({"job": job, "status": state.status})
    waits = state.status in ("queued", "running")
    hint = "; poll it until its status is done" if waits else ""
    says = f"job '{job}' is {state.status} and has no counts{hint}"
    return failed("quantum", says, retryable=waits)


async def fitted(result: dict[str, Any], call: ToolCall[Any], workplace: Workplace) -> Any:
    """Many counts go to the result store at once (EVT-4)."""
    encoded = msgspec.json.encode(result)
    if len(encoded) <= call.max_inline:
        return result
    return await keep(workplace.results, call.execution_id, encoded)


GROUP = "noetl.quantum"


class Providers:
    """Each is made when it is first asked for, and kept."""

    def __init__(self, table: Mapping[str, Callable[[], Provider]]) -> None:
        self._table = table
        self._made: dict[str, Provider] = {}

    def find(self, name: str) -> Provider:
        """Raises Refusal where there is none, or it cannot be made."""
        if name not in self._made:
            self._made[name] = self._make(name)
        return self._made[name]

    async def close(self) -> None:
        made = list(self._made.values())
        self._made.clear()
        for provider in made:
            await provider.close()

    def _make(self, name: str) -> Provider:
        if name in self._table:
            return self._table[name]()
        found = entry_points(group=GROUP)
        if name not in found.names:
            known = ", ".join(sorted({*self._table, *found.names}))
            says = f"no quantum provider '{name}'; there is {known}"
            raise Refusal("not_found", f"{says}. Others are packages with an entry point {GROUP}")
        try:
            provider: Provider = found[name].load()()
        except Exception as fault:
            says = f"the quantum provider '{name}' cannot be used: {type(fault).__name__}: {fault}"
            raise Refusal("not_found", says) from None
        return provider
