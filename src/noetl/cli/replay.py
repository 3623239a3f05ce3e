"""`noetl replay`: the state that the log comes to, and the proof that it follows (EVT-5)."""

import click
import msgspec

from noetl.cli import exits
from noetl.cli.contexts import Target
from noetl.cli.home import ID, JSON, print_json
from noetl.cli.running.words import count, value_words
from noetl.cli.target import aimed, near_or_far
from noetl.client.client import Client
from noetl.messages.codec import encode
from noetl.node.local import LocalNode
from noetl.server.replay import replay as fold
from noetl.server.verify import Verified, verify
from noetl.server.views.state import State, state_of

EPILOG = """\b
Examples:
  noetl replay 06h3k9v2q8m4x0c7w1
  noetl replay 06h3k9v2q8m4x0c7w1 --verify

\b
Exit codes: 0 rebuilt (and proved), 1 the log differs from what follows, 3 usage or environment.
"""


@click.command(epilog=EPILOG)
@ID
@click.option(
    "--verify",
    "proving",
    is_flag=True,
    help="Make every decision again from its recorded input, and compare.",
)
@JSON
@aimed
def replay(execution_id: str, proving: bool, as_json: bool, target: Target) -> int:
    """Rebuild the state of an execution from its log alone."""
    state, proof = near_or_far(
        target,
        near=lambda local: rebuilt(local, execution_id, proving=proving),
        far=lambda client: asked(client, execution_id, proving=proving),
    )
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
    local: LocalNode, execution_id: str, *, proving: bool
) -> tuple[State, Verified | None]:
    await local.row(execution_id)
    storage = local.storage
    proof = (
        await verify(storage.log, storage.playbooks, local.results, execution_id)
        if proving
        else None
    )
    _, plan = await local.state(execution_id)
    execution, _ = await fold(storage.log, execution_id, plan, from_snapshot=False)
    return state_of(execution), proof


def asked(client: Client, execution_id: str, *, proving: bool) -> tuple[State, Verified | None]:
    proof = client.verified(execution_id) if proving else None
    return msgspec.structs.asdict(client.state(execution_id)), proof


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
