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
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from noetl.tools.bounds import CPU_SECONDS

LONGEST_LINE = 4000
"""Bytes: lines of several processes do not mix in a pipe as long as they are shorter than 4096."""
PR_SET_PDEATHSIG = 1


@dataclass
class Fork:
    """The process of a job, and the pipe by which it gets its turn."""

    job: str
    pid: int
    turn: int
    running: bool = False
    cancelled: bool = False


class Jobs:
    """Every job has a process at once, and waits in it until it is its turn."""

    def __init__(self, folder: Path, most: int, told: int) -> None:
        self._folder = folder
        self._most = most
        self._told = told
        self._poll = select.poll()
        self._forks: dict[int, Fork] = {}
        """By the descriptor that tells of the end; in the order in which they came."""

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
        if "cancel" not in order:
            self._start(order["job"], order)
            return
        for fork in self._forks.values():
            if fork.job == order["job"]:
                fork.cancelled = True
                os.kill(fork.pid, signal.SIGKILL)

    def _start(self, job: str, order: dict[str, Any]) -> None:
        reading, writing = os.pipe()
        pid = os.fork()
        if not pid:
            os.close(writing)
            run(job, order, self._folder, self._told, reading)
        os.close(reading)
        ended = os.pidfd_open(pid)
        self._forks[ended] = Fork(job, pid, writing)
        self._poll.register(ended, select.POLLIN)
        self._give_turns()

    def _give_turns(self) -> None:
        free = self._most - sum(fork.running for fork in self._forks.values())
        for fork in [fork for fork in self._forks.values() if not fork.running][:free]:
            fork.running = True
            os.write(fork.turn, b".")

    def _see_end(self, descriptor: int) -> None:
        fork = self._forks.pop(descriptor)
        self._poll.unregister(descriptor)
        os.close(descriptor)
        os.close(fork.turn)
        _, status = os.waitpid(fork.pid, 0)
        code = os.waitstatus_to_exitcode(status)
        if fork.cancelled:
            tell(self._told, fork.job, status="cancelled")
        elif code:
            how = f"signal {-code}" if code < 0 else f"exit code {code}"
            says = f"the process of the job ended with {how}"
            retryable = code != -signal.SIGXCPU  # it would use as much of its processors again
            tell(self._told, fork.job, status="failed", message=says, retryable=retryable)
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

        simulate(order, folder / order["file"], partial(tell, told, job), my_turn, printed)
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


def main(folder: str, most: str) -> None:
    told = os.dup(1)
    os.set_inheritable(told, False)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    import noetl.tools.quantum.inside.simulate  # noqa: F401  (before the first fork)

    Jobs(Path(folder), int(most), told).serve(0)
