"""`noetl replay`: the state that the log comes to, and the proof that it follows (EVT-5)."""

import click
import msgspec

from noetl.cli import exits
from noetl.cli.contexts import Target
from noetl.cli.output import ID, JSON, tell
from noetl.cli.running.words import count, value_words
from noetl.cli.target import Asked, aimed, ask
from noetl.messages.codec import encode
from noetl.server.verify import Verified
from noetl.server.views.state import State

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
    help="Repeat every decision from its recorded input and compare.",
)
@JSON
@aimed
def replay(execution_id: str, proving: bool, as_json: bool, target: Target) -> int:
    """Rebuild the state of an execution from its log alone."""
    state, proof = ask(target, lambda asked: rebuilt(asked, execution_id, proving=proving))
    lines = lines_of(state)
    if proof is not None:
        state["verified"] = proof
        lines.append(f"{'verified' if proof.ok else 'not verified'}: {proof.message}")
    tell(state, *lines, as_json=as_json)
    return exits.OK if proof is None or proof.ok else exits.FAILED


async def rebuilt(
    asked: Asked, execution_id: str, *, proving: bool
) -> tuple[State, Verified | None]:
    proof = await asked.verified(execution_id) if proving else None
    return msgspec.structs.asdict(await asked.state(execution_id)), proof


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
