"""An execution on the home, run by a process of its own: `noetl run` and `noetl execute`."""

import asyncio
import signal
from pathlib import Path
from typing import Any

import anyio
import msgspec

from noetl.errors import NoetlError
from noetl.tools.children import ourselves
from noetl.tools.environment import VARIABLES

RUNS = {True: ("run",), False: ("execute", "--context", "local", "--wait")}
"""Whether a file is run → the command."""


async def run_here(playbook: str, version: str | None, workload: dict[str, Any]) -> dict[str, Any]:
    """
    The report of an execution, or the findings of a playbook that is not valid.

    If the agent gives up meanwhile, the execution is interrupted as by Ctrl-C, and can be resumed.
    """
    is_file = Path(playbook).is_file()
    words = [*RUNS[is_file], "--payload", "-", "--json"]
    if version is not None and not is_file:
        words.append(f"--version={version}")
    words += ["--", playbook]  # whatever an agent calls it, it is no option
    process = await asyncio.create_subprocess_exec(
        *ourselves(*words),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**VARIABLES},
    )
    try:
        out, err = await process.communicate(msgspec.json.encode(workload))
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGINT)
            with anyio.CancelScope(shield=True):
                await process.communicate()
    return answer_in(out, err)


def answer_in(out: bytes, err: bytes) -> dict[str, Any]:
    """What the command printed; NoetlError with its words where that is no report."""
    try:
        answer = msgspec.json.decode(out)
    except msgspec.DecodeError:
        raise NoetlError(err.decode(errors="replace").strip() or "it said nothing") from None
    if answer.get("status") == "error":
        raise NoetlError(answer["error"])
    return dict(answer)
