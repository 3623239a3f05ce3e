"""Runs circuits for tasks of kind `quantum`: submit, poll, fetch and cancel (TOOL-4)."""

import asyncio
import hashlib
from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from typing import Any

import msgspec

from noetl.errors import CredentialMissing
from noetl.kinds.quantum import QuantumInputs
from noetl.masking import KNOWN
from noetl.messages.outcome import Outcome, failed, ok
from noetl.tools.process.memory import NoAmount, bytes_of
from noetl.tools.quantum.aer import AerProvider
from noetl.tools.quantum.circuits import bound
from noetl.tools.quantum.provenance import Provenance, block_of, provenance_of
from noetl.tools.quantum.provider import JobSpec, JobState, Provider
from noetl.tools.refusal import Refusal, unforeseen
from noetl.tools.spill import finish, spill
from noetl.tools.tool import ToolCall, Workplace

SEEDS = 2**31
AGAIN = "submit the circuit again, by a policy that jumps to the submitting task"

Credential = Mapping[str, Any] | None


class OperationResult(msgspec.Struct, frozen=True):
    """What an operation came to, before its block is put beside it."""

    outcome: Outcome
    job: str | None = None
    status: str | None = None


class QuantumTool:
    """Jobs outlive calls: they are kept until their execution is over."""

    keeps_time = True

    def __init__(self, providers: "Providers | None" = None) -> None:
        self._providers = providers or Providers()
        self._jobs: dict[tuple[str, str], Provenance] = {}

    async def call(self, call: ToolCall[QuantumInputs], workplace: Workplace) -> Outcome:
        try:
            async with asyncio.timeout(call.timeout.total):
                answer = await self._run(call, workplace)
        except Refusal as refusal:
            answer = OperationResult(refusal.outcome, call.inputs.job)
        except CredentialMissing as missing:
            answer = OperationResult(failed("auth", str(missing)), call.inputs.job)
        except TimeoutError:
            says = f"the provider did not answer within {call.timeout.total:g} s"
            answer = OperationResult(failed("timeout", says, retryable=True), call.inputs.job)
        except Exception as fault:
            answer = OperationResult(unforeseen(fault), call.inputs.job)
        known = self._jobs.get((call.inputs.provider, answer.job or ""))
        block = block_of(call.inputs, answer.job, answer.status, known)
        return msgspec.structs.replace(unquoted(answer.outcome, call.inputs.circuit), block=block)

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

    async def _run(self, call: ToolCall[QuantumInputs], workplace: Workplace) -> OperationResult:
        inputs = call.inputs
        provider = self._providers.find(inputs.provider)
        credential = await workplace.unlock(inputs.auth) if inputs.auth else None
        match inputs.operation:
            case "submit":
                return await self._submit(call, provider, credential)
            case "poll":
                return polled(job_of(inputs), await provider.poll(job_of(inputs), credential))
            case "cancel":
                return polled(job_of(inputs), await provider.cancel(job_of(inputs), credential))
            case "fetch":
                return await self._fetch(call, provider, credential, workplace)

    async def _submit(
        self, call: ToolCall[QuantumInputs], provider: Provider, credential: Credential
    ) -> OperationResult:
        inputs = call.inputs
        seed = seed_of(call) if inputs.seed is None else inputs.seed
        accepted = await provider.submit(order_of(call, seed), credential)
        known = provenance_of(inputs, call.execution_id, seed, accepted)
        self._jobs[inputs.provider, accepted.job] = known
        result = {"job": accepted.job, "status": "queued"}
        return OperationResult(ok(result), accepted.job, "queued")

    async def _fetch(
        self,
        call: ToolCall[QuantumInputs],
        provider: Provider,
        credential: Credential,
        workplace: Workplace,
    ) -> OperationResult:
        job = job_of(call.inputs)
        state = await provider.poll(job, credential)
        if state.status != "done":
            return unfetched(job, state)
        counts = await provider.fetch(job, credential)
        result = {"job": job, "shots": sum(counts.values()), "counts": counts}
        return OperationResult(ok(await fitted(result, call, workplace)), job, state.status)


def unquoted(outcome: Outcome, circuit: str | None) -> Outcome:
    """KEY-2: parsers quote words of a circuit, and a word of a secret is not known as one."""
    if outcome.error is None or circuit is None or not KNOWN.holds(circuit):
        return outcome
    line = outcome.error.get("line")
    place = "" if line is None else f" (line {line})"
    says = f"the circuit was not taken{place}; why is not told, because a secret stands in it"
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
    cpu, memory = call.resources.get("cpu", 1), call.resources.get("memory")
    if isinstance(cpu, bool) or not isinstance(cpu, int) or not 0 < cpu <= 1024:
        raise Refusal("input", f"spec.resources.cpu is {cpu!r}; expected a whole number such as 2")
    try:
        size = None if memory is None else bytes_of(memory)
    except NoAmount as wrong:
        raise Refusal("input", str(wrong)) from None
    return JobSpec(
        key=call.idempotency_key,
        circuit=bound(inputs.circuit, inputs.parameters),
        shots=inputs.shots,
        seed=seed,
        backend=inputs.backend,
        cpu=cpu,
        memory=size,
    )


def polled(job: str, state: JobState) -> OperationResult:
    """A job that runs, is done or was cancelled is an answer; one that failed is an error."""
    match state.status:
        case "failed":
            says = f"job '{job}' failed: {state.message}"
            outcome = failed("quantum", says, retryable=state.retryable)
        case "lost":
            says = f"job '{job}' is lost: {state.message}; {AGAIN}"
            outcome = failed("quantum", says, retryable=True)
        case _:
            outcome = ok({"job": job, "status": state.status})
    return OperationResult(outcome, job, state.status)


def unfetched(job: str, state: JobState) -> OperationResult:
    """There is nothing to fetch; of a job that is not done yet there may be later."""
    if state.status in ("failed", "lost"):
        return polled(job, state)
    says = f"job '{job}' is {state.status} and has no counts"
    waits = state.status in ("queued", "running")
    hint = "; poll it until its status is done" if waits else ""
    return OperationResult(failed("quantum", f"{says}{hint}", retryable=waits), job, state.status)


async def fitted(result: dict[str, Any], call: ToolCall[Any], workplace: Workplace) -> Any:
    """Many counts go to the result store at once (EVT-4)."""
    encoded = msgspec.json.encode(result)
    if len(encoded) <= call.max_inline:
        return result
    writer = workplace.results.open(call.execution_id)
    try:
        spill(writer, encoded)
        return await finish(writer, "object")
    except BaseException:
        await writer.discard()
        raise


GROUP = "noetl.quantum"
BUILT_IN: Mapping[str, Callable[[], Provider]] = {"aer": AerProvider}


class Providers:
    """Each is made when it is first asked for, and kept."""

    def __init__(self, table: Mapping[str, Callable[[], Provider]] = BUILT_IN) -> None:
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
