"""The built-in provider: jobs on Qiskit Aer, in processes of this worker."""

import asyncio
import importlib.util
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import msgspec

from noetl.messages.clipping import beginning
from noetl.tools.bounds import DEMANDED, Namespaces
from noetl.tools.children import INSIDE, PIPE, end_all, spawn_async
from noetl.tools.process.folders import Folders
from noetl.tools.process.inside.namespaces import UNCONFINED
from noetl.tools.quantum.circuits import version_of
from noetl.tools.quantum.provider import Accepted, JobSpec, JobState
from noetl.tools.refusal import Refusal, needs_extra
from noetl.tools.resources import DEFAULT

PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv[1]); from inside.namespaces import bind_to, confine; "
    "private, shown = (word.split('\\n') if word else [] for word in sys.argv[4:6]); "
    "bind_to(confine(sys.argv[2], int(sys.argv[3]), (0, 1, 2), private, shown, writes=True)); "
    "del sys.path[0]; "
    "from noetl.tools.quantum.inside.serve import main; main(*sys.argv[5:])"
)
"""Confined as other children are: what reads circuits and runs them is not trusted with more."""
MOST_OPEN = 256
"""Jobs that have a process; a further one is refused until another has ended."""
LOST = "the process that ran it is gone; submit the circuit again"
LONGEST_MESSAGE = 200
ENDED = ("done", "failed", "cancelled", "lost")


class Said(JobState, frozen=True, kw_only=True):
    """A line of the serving process."""

    job: str
    line: int | None = None
    column: int | None = None
    backend: str = ""
    versions: dict[str, str] = msgspec.field(default_factory=dict)


class Job(msgspec.Struct):
    """What is known of a job here."""

    order: JobSpec
    file: str
    told: Said
    heard: asyncio.Event = msgspec.field(default_factory=asyncio.Event)
    """Set by every word about it: the first says that the circuit is read, or why not."""


class AerProvider:
    """See `provider.Provider`. `most` jobs run at once; the others are queued."""

    def __init__(
        self,
        *,
        most: int | None = None,
        most_open: int = MOST_OPEN,
        namespaces: Namespaces = "auto",
        private: Sequence[str] = (),
    ) -> None:
        self._namespaces = namespaces
        self._private = "\n".join(private)
        self._most = most or len(os.sched_getaffinity(0))
        self._most_open = most_open
        self._folders = Folders("quantum")
        self._folder: Path | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._starting = asyncio.Lock()
        self._listening: asyncio.Task[None] | None = None
        self._jobs: dict[str, Job] = {}
        self._number = count(1)

    async def submit(self, order: JobSpec, credential: Mapping[str, Any] | None = None) -> Accepted:
        del credential
        known = self._jobs.get(order.key)
        if known is None or known.order != order or known.told.status in ("failed", "lost"):
            known = await self._send_order(order)
        try:
            await known.heard.wait()
        except asyncio.CancelledError:
            await self.forget(order.key)
            raise
        told = known.told
        if told.status in ("failed", "lost") and not told.backend:
            del self._jobs[order.key]
            raise refused(told)
        return Accepted(job=order.key, backend=told.backend, versions=told.versions)

    async def poll(self, job: str, credential: Mapping[str, Any] | None = None) -> JobState:
        del credential
        known = self._jobs.get(job)
        if known is None:
            return JobState(status="lost", message=f"no job '{job}' in this worker; {LOST}")
        return known.told

    async def fetch(
        self, job: str, credential: Mapping[str, Any] | None = None
    ) -> Mapping[str, int]:
        del credential
        assert self._folder is not None, "a job that is done has a file"
        content = await asyncio.to_thread((self._folder / self._jobs[job].file).read_bytes)
        return msgspec.json.decode(content, type=dict[str, int])

    async def cancel(self, job: str, credential: Mapping[str, Any] | None = None) -> JobState:
        known = self._jobs.get(job)
        if known is not None and known.told.status not in ENDED:
            await self._send({"job": job, "cancel": True})
            while known.told.status not in ENDED:
                known.heard.clear()
                await known.heard.wait()
        return await self.poll(job, credential)

    async def forget(self, job: str) -> None:
        known = self._jobs.pop(job, None)
        if known is None or self._folder is None:
            return
        if known.told.status not in ENDED:
            await self._send({"job": job, "cancel": True})
        for name in (known.file, f"{known.file}.printed"):
            (self._folder / name).unlink(missing_ok=True)

    async def close(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            end_all(process.pid)
            await process.wait()
        if self._listening is not None:
            await self._listening
            self._listening = None
        self._jobs.clear()
        self._folder = None
        self._folders.close()

    async def _send_order(self, order: JobSpec) -> Job:
        open_jobs = sum(job.told.status not in ENDED for job in self._jobs.values())
        if open_jobs >= self._most_open:
            says = f"{open_jobs} jobs are open already; submit again when some have ended"
            raise Refusal("quantum", says, retryable=True)
        version = version_of(order.circuit)
        async with self._starting:
            if self._process is None:
                await self._start()
        told = Said(job=order.key, status="queued")
        job = self._jobs[order.key] = Job(order, f"job-{next(self._number)}.json", told)
        memory = order.memory or DEFAULT
        more = {"job": order.key, "file": job.file, "version": version, "memory": memory}
        await self._send({**msgspec.to_builtins(order), **more})
        return job

    async def _start(self) -> None:
        for module in ("qiskit", "qiskit_aer"):
            if importlib.util.find_spec(module) is None:
                raise needs_extra("the provider 'aer'", "quantum")
        if self._folder is None:
            self._folder = Path(self._folders.new())
        kept = (self._namespaces, str(os.getpid()), self._private)
        words = (INSIDE, *kept, str(self._folder), str(self._most))
        self._process = await spawn_async(
            *(sys.executable, "-I", "-c", PROGRAM, *words), stdin=PIPE, cwd=self._folder
        )
        self._listening = asyncio.create_task(self._listen(self._process))

    async def _send(self, fields: dict[str, Any]) -> None:
        if self._process is None or self._process.stdin is None:
            return
        with suppress(ConnectionError):  # it is gone; `_listen` tells the jobs
            self._process.stdin.write(msgspec.json.encode(fields) + b"\n")
            await self._process.stdin.drain()

    async def _listen(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None, "it was started with a pipe"
        while line := await process.stdout.readline():
            told = msgspec.json.decode(line, type=Said)
            job = self._jobs.get(told.job)
            if job is not None:
                job.told = msgspec.structs.replace(
                    told,
                    backend=told.backend or job.told.backend,
                    versions=told.versions or job.told.versions,
                )
                job.heard.set()
        end_all(process.pid)
        code = await process.wait()
        if self._process is process:
            self._process = None
        why = ("failed", DEMANDED) if code == UNCONFINED else ("lost", LOST)
        for job in self._jobs.values():
            if job.told.status not in ENDED:
                job.told = msgspec.structs.replace(job.told, status=why[0], message=why[1])
            job.heard.set()


def refused(told: Said) -> Refusal:
    """Why an order was not taken; a fault of the circuit says where it is."""
    if told.status == "lost":
        return Refusal("quantum", "the process that runs circuits ended", retryable=True)
    if told.line is None:
        return Refusal("quantum", shown(told.message), retryable=told.retryable)
    place = f"line {told.line}, column {told.column}"
    says = f"the circuit does not parse ({place}): {shown(told.message)}"
    return Refusal("quantum", says, line=told.line, column=told.column)


def shown(message: str) -> str:
    return message if len(message) <= LONGEST_MESSAGE else f"{beginning(message, LONGEST_MESSAGE)}…"
