"""`noetl replay`: the state that the log comes to, and the proof that it follows (EVT-5)."""

from typing import Any

import click

from noetl.assembly import Local
from noetl.cli import exits
from noetl.cli.home import ID, JSON, in_home, print_json
from noetl.cli.running.words import count, value_words
from noetl.control.execution import Execution, Run
from noetl.messages.codec import encode
from noetl.server.replay import replay as fold
from noetl.server.verify import Verified, verify

EPILOG = """\b
Examples:
  noetl replay 06h3k9v2q8m4x0c7w1
  noetl replay 06h3k9v2q8m4x0c7w1 --verify

\b
Exit codes: 0 rebuilt (and proved), 1 the log differs from what follows, 3 usage or environment.
"""

State = dict[str, Any]


@click.command(epilog=EPILOG)
@ID
@click.option(
    "--verify",
    "proving",
    is_flag=True,
    help="Make every decision again from its recorded input, and compare.",
)
@JSON
def replay(execution_id: str, proving: bool, as_json: bool) -> int:
    """Rebuild the state of an execution from its log alone."""
    state, proof = in_home(lambda local: rebuilt(local, execution_id, proving=proving))
    if as_json:
        told = state if proof is None else {**state, "verified": proof}
        print_json(told)
    else:
        for line in lines_of(state):
            click.echo(line)
        if proof is not None:
            click.echo(f"{'verified' if proof.ok else 'not verified'}: {proof.message}")
    return exits.OK if proof is None or proof.ok else exits.FAILED


async def rebuilt(
    local: Local, execution_id: str, *, proving: bool
) -> tuple[State, Verified | None]:
    await local.row(execution_id)
    home = local.home
    proof = await verify(home.log, home.playbooks, local.results, execution_id) if proving else None
    _, plan, _ = await local.load(execution_id)
    execution, _ = await fold(home.log, execution_id, plan, from_snapshot=False)
    return state_of(execution), proof


def state_of(execution: Execution) -> State:
    """The state as the contract of the command names it."""
    runs = execution.runs.values()
    return {
        "execution_id": execution.execution_id,
        "seq": execution.seq,
        "status": execution.status,
        "ctx": execution.ctx,
        "tokens": list(execution.tokens.values()),
        "runs": [run_of(run) for run in runs],
        "loops": [loop_of(run) for run in runs if run.loop is not None],
    }


def run_of(run: Run) -> State:
    return {
        "step_run_id": run.step_run_id,
        "step": run.step,
        "args": run.args,
        "started": run.started,
        "frame": run.frame,
        "legs": list(run.legs.values()),
        "suspended": list(run.suspended.values()),
    }


def loop_of(run: Run) -> State:
    loop = run.loop
    assert loop is not None, "the run has a loop"
    return {
        "step_run_id": run.step_run_id,
        "step": run.step,
        "mode": loop.mode,
        "exec": loop.exec,
        "total": loop.total,
        "offered": loop.offered,
        "low": loop.low,
        "done": loop.done,
        "failed": loop.failed,
        "active": sorted(loop.active),
    }


def lines_of(state: State) -> list[str]:
    """The same for people."""
    lines = [
        f"execution {state['execution_id']}: {state['status']} at event {state['seq']}",
        *(f"  ctx.{key} = {value_words(value)}" for key, value in state["ctx"].items()),
    ]
    for name in ("tokens", "runs", "loops"):
        found = state[name]
        if found:
            lines.append(f"  {count(len(found), name[:-1])}:")
            lines += [f"    {value_words(encode(one).decode())}" for one in found]
    return lines
