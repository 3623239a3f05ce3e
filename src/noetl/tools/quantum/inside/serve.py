"""
The process that jobs are forked from, so that Qiskit is loaded once and a crash ends one job.

Reads orders from standard input, one JSON object a line; tells what becomes of them on standard
output. It ends, and all jobs with it, when its input ends: a worker that dies takes them along.
"""

import ctypes
import json
import os
import resource
import select
import signal
import sys
from collections import deque
from pathlib import Path
from typing import Any

from noetl.tools.bounds import CPU_SECONDS

LONGEST_LINE = 4000
"""Bytes: lines of several processes do not mix in a pipe as long as they are shorter than 4096."""
PR_SET_PDEATHSIG = 1


class Jobs:
    """Every job has a process at once, and waits in it until it is its turn."""

    def __init__(self, folder: Path, most: int, told: int) -> None:
        self._folder = folder
        self._free = most
        self._told = told
        self._poll = select.poll()
        self._pids: dict[str, int] = {}
        self._turns: dict[str, int] = {}
        self._running: set[str] = set()
        self._cancelled: set[str] = set()
        self._jobs: dict[int, str] = {}
        self._waiting: deque[str] = deque()

    def serve(self, orders: int) -> None:
        self._poll.register(orders, select.POLLIN)
        unread = b""
        while True:
            for descriptor, _ in self._poll.poll():
                if descriptor != orders:
                    self._see_end(descriptor)
                    continue
                piece = os.read(orders, 1 << 20)
                if not piece:
                    return
                *lines, unread = (unread + piece).split(b"\n")
                for line in lines:
                    self._take(json.loads(line))

    def _take(self, order: dict[str, Any]) -> None:
        job = order["job"]
        if "cancel" not in order:
            self._start(job, order)
        elif job in self._pids:
            self._cancelled.add(job)
            os.kill(self._pids[job], signal.SIGKILL)

    def _start(self, job: str, order: dict[str, Any]) -> None:
        reading, writing = os.pipe()
        pid = os.fork()
        if not pid:
            os.close(writing)
            run(job, order, self._folder, self._told, reading)
        os.close(reading)
        ended = os.pidfd_open(pid)
        self._pids[job], self._turns[job], self._jobs[ended] = pid, writing, job
        self._poll.register(ended, select.POLLIN)
        self._waiting.append(job)
        self._give_turns()

    def _give_turns(self) -> None:
        while self._waiting and len(self._running) < self._free:
            job = self._waiting.popleft()
            if job in self._turns:
                self._running.add(job)
                os.write(self._turns[job], b".")

    def _see_end(self, descriptor: int) -> None:
        job = self._jobs.pop(descriptor)
        self._poll.unregister(descriptor)
        os.close(descriptor)
        os.close(self._turns.pop(job))
        _, status = os.waitpid(self._pids.pop(job), 0)
        self._running.discard(job)
        code = os.waitstatus_to_exitcode(status)
        if job in self._cancelled:
            self._cancelled.discard(job)
            tell(self._told, job, status="cancelled")
        elif code:
            how = f"signal {-code}" if code < 0 else f"exit code {code}"
            says = f"the process of the job ended with {how}"
            retryable = code != -signal.SIGXCPU  # it would use as much of its processors again
            tell(self._told, job, status="failed", message=says, retryable=retryable)
        self._give_turns()


def run(job: str, order: dict[str, Any], folder: Path, told: int, turn: int) -> None:
    """The life of a job's process; what Qiskit prints goes into a file beside the result."""
    code = 1
    try:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        most = CPU_SECONDS * int(order["cpu"])
        resource.setrlimit(resource.RLIMIT_CPU, (most, resource.RLIM_INFINITY))
        from noetl.tools.quantum.inside.simulate import simulate

        printed = folder / f"{order['file']}.printed"
        descriptor = os.open(printed, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)

        def my_turn() -> None:
            if not os.read(turn, 1):
                os._exit(1)

        def say(**fields: Any) -> None:
            tell(told, job, **fields)

        simulate(order, folder / order["file"], say, my_turn, printed)
        printed.unlink()
        code = 0
    except BaseException as fault:
        tell(told, job, status="failed", message=f"{type(fault).__name__}: {fault}")
        code = 0
    finally:
        os._exit(code)


def tell(descriptor: int, job: str, **fields: Any) -> None:
    line = json.dumps({"job": job, **fields}).encode()
    if len(line) > LONGEST_LINE and "message" in fields:
        shorter = fields["message"].encode("ascii", "replace")[: LONGEST_LINE // 2].decode()
        line = json.dumps({"job": job, **fields, "message": shorter}).encode()
    os.write(descriptor, line + b"\n")


def main() -> None:
    folder, most = sys.argv[1:]
    told = os.dup(1)
    os.set_inheritable(told, False)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    import noetl.tools.quantum.inside.simulate  # noqa: F401  (before the first fork)

    Jobs(Path(folder), int(most), told).serve(0)


if __name__ == "__main__":
    main()
