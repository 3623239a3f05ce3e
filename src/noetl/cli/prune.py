"""`noetl prune`: remove ended executions by age, status, path and label (KEEP-1)."""

from collections.abc import Callable
from typing import Any

import click
from msgspec.structs import asdict, replace

from noetl.api.types import PruneRequest
from noetl.cli import exits
from noetl.cli.contexts import LOCAL, Target
from noetl.cli.home import in_database, in_home
from noetl.cli.ordering import note
from noetl.cli.output import JSON, print_line, tell
from noetl.cli.running.words import count
from noetl.cli.target import aimed, at_server, is_new
from noetl.cli.terminal import is_terminal
from noetl.node.control_plane import ControlPlane
from noetl.node.housekeeping import prune
from noetl.server.policies import ENDS, FORMS, Pruned, RetentionPolicy, age_of, label_of
from noetl.settings import read_settings

EPILOG = """\b
Examples:
  noetl prune --older-than 30d --dry-run
  noetl prune --older-than 30d --status completed --path 'etl/*' --yes
  noetl prune --older-than 12w --label team=sales --archive results --format parquet
  noetl prune --older-than 30d --archive s3://lake/noetl --yes --server https://noetl.example.com

\b
PLACE is `results` (the result store), a folder, s3://BUCKET/PREFIX or gs://BUCKET/PREFIX.

\b
Exit codes: 0 removed, or nothing to remove; 1 not confirmed; 3 usage or environment.
"""
MOST = 1000
AT_ONCE = 100
SHOWN = 10

Prunes = Callable[[bool], Pruned]
"""One request: True asks for a dry run."""


@click.command("prune", epilog=EPILOG)
@click.option("--older-than", required=True, metavar="AGE", help="Ended so long ago: 12h, 30d, 6w.")
@click.option("--status", multiple=True, type=click.Choice(ENDS), help="Of this end; may repeat.")
@click.option("--path", default="*", metavar="GLOB", help="Of these playbooks.  [default: *]")
@click.option("--label", multiple=True, metavar="NAME=VALUE", help="Of playbooks with this label.")
@click.option("--archive", metavar="PLACE", help="Keep events and results there before.")
@click.option("--format", "form", type=click.Choice(FORMS), default="jsonl", help="Of the archive.")
@click.option("--dry-run", is_flag=True, help="Show what would be removed.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@JSON
@aimed
def prune_command(dry_run: bool, yes: bool, as_json: bool, target: Target, **options: Any) -> int:
    """
    Remove ended executions with their children, logs and results.

    What a running execution or a restart still needs stays. With --archive, events and results
    are stored elsewhere before anything is removed.
    """
    policy = policy_in(options)
    if is_new(target):
        return report(Pruned(executions=[]), policy, dry_run=dry_run, as_json=as_json)
    prunes = at(target, policy)
    found = prunes(True)
    if dry_run or not found.executions:
        return report(found, policy, dry_run=True, as_json=as_json)
    if not yes and not confirmed(found):
        return exits.FAILED
    gone = Pruned(executions=[])
    while (more := prunes(False)).executions:
        gone = Pruned(
            executions=gone.executions + more.executions, bodies=gone.bodies + more.bodies
        )
    return report(gone, policy, dry_run=False, as_json=as_json)


def policy_in(options: dict[str, Any]) -> RetentionPolicy:
    labels: dict[str, str] = {}
    try:
        for label in options.pop("label"):
            labels |= label_of(label)
        age = age_of(options.pop("older_than"))
    except ValueError as wrong:
        raise click.UsageError(str(wrong)) from None
    return RetentionPolicy(older_than=age, labels=labels, **options)


def at(target: Target, policy: RetentionPolicy) -> Prunes:
    """What removes there, where the command is for: a server, a database, or the home."""
    if not target.local:
        asked = PruneRequest(**asdict(policy) | {"status": list(policy.status)})
        return lambda dry: at_server(
            target,
            lambda client: client.prune(
                replace(asked, dry_run=dry, limit=MOST if dry else AT_ONCE)
            ),
        )
    settings = read_settings()
    in_home_alone = settings.db is None or target.context == LOCAL

    def here(dry: bool) -> Pruned:
        async def work(plane: ControlPlane) -> Pruned:
            gone = await prune(plane, policy, most=MOST, dry_run=dry, local=in_home_alone)
            if gone.executions and not dry:
                await note(plane, "prune", count(len(gone.executions), "execution"))
            return gone

        return in_home(work) if in_home_alone else in_database(settings, work, writes=True)

    return here


def confirmed(found: Pruned) -> bool:
    if not is_terminal(err=True):
        raise click.UsageError("it removes executions for good: give --yes, or look with --dry-run")
    number = len(found.executions)
    said = f"{'at least ' * (number >= MOST)}{count(number, 'execution')}"
    return click.confirm(f"remove {said} for good?", err=True)


def report(found: Pruned, policy: RetentionPolicy, *, dry_run: bool, as_json: bool) -> int:
    """What went, or would go."""
    ids = found.executions
    if not as_json and dry_run:
        for execution_id in ids[:SHOWN]:
            print_line(execution_id)
        if len(ids) > SHOWN:
            print_line(f"… and {len(ids) - SHOWN} more")
    number = f"{'at least ' * (dry_run and len(ids) >= MOST)}{count(len(ids), 'execution')}"
    kept = "" if policy.archive is None or not ids else f", archived in {policy.archive}"
    went = f"removed {number} and {count(found.bodies, 'result')}{kept}"
    said = "nothing to remove" if not ids else f"would remove {number}" if dry_run else went
    value = {"dry_run": dry_run, "executions": len(ids), "bodies": found.bodies, "ids": ids[:MOST]}
    tell(value, said, as_json=as_json)
    return exits.OK
