"""Every page of the web UI, and a server that is busy enough to look at: for tests and pictures."""

import json

from tests.system.servers import Node
from tests.ui.stories import DEPLOY, INVOICE, NIGHT, register, start

Seen = dict[str, str]
"""Ids of what the pages show, by the names that their addresses use."""

PAGES = {
    "executions": ("executions", "tbody tr"),
    "execution": ("executions/{failed}", "button:text-is('charge')"),
    "graph": ("executions/{failed}?tab=graph", ".svelte-flow__node"),
    "events": ("executions/{failed}?tab=events", "text=step.started"),
    "output": ("executions/{failed}?tab=output", "text=priced 0"),
    "values": ("executions/{failed}?tab=values", "text=workload: what it was given"),
    "arcs": (
        "executions/{failed}?tab=graph&step=price_each",
        "text=not taken: its guard was false",
    ),
    "iteration": ("executions/{failed}?run={loop}&iteration=7", "text=ZeroDivisionError"),
    "attempts": ("executions/{failed}?run={stock}", "text=Attempt 3"),
    "event": ("executions/{failed}?tab=events&q=step.failed&event={last}", "[aria-label=Event]"),
    "approval": ("executions/{waiting}", "text=Ship release 4.2?"),
    "playbooks": ("playbooks", "tbody tr"),
    "playbook": ("playbooks/shop/orders", ".svelte-flow__node"),
    "runs": (
        "playbooks/shop/orders?tab=runs",
        "tr:has(th:text-is('settle')) td:nth-child(2) [data-status]",
    ),
    "edit": (
        "playbooks/shop/orders?tab=edit",
        "[aria-label='Graph of the text'] .svelte-flow__node",
    ),
    "tests": ("playbooks/shop/orders?tab=tests", ".cm-content"),
    "text": ("playbooks/shop/orders?tab=text", "text=metadata:"),
    "versions": ("playbooks/shop/orders?tab=versions", "a:text-is('4')"),
    "compare": ("playbooks/shop/orders?tab=compare&from=1&to=4", ".cm-content"),
    "template": (
        "executions/{failed}?tab=template&template=%7B%7B+workload+%7D%7D",
        "[aria-label='What it comes to'] pre",
    ),
    "restart": ("executions/{failed}?restart=*", "text=taken over and not run again"),
    "waiting": ("waiting", "text=Ship release 4.2?"),
    "triggers": ("triggers", ".mark"),
    "runtime": ("runtime", "figure:has-text('Mean answer') polyline"),
    "credentials": ("credentials", "text=shop/db"),
    "tokens": ("tokens", "text=night-shift"),
    "audit": ("audit", "td:text-is('credential.put')"),
}
"""Name → address, and what is there when the page is."""

SCHEDULES = {
    "shop/nightly": '{cron: "0 3 * * *", timezone: Europe/Berlin}',
    "shop/stock": '{cron: "30 6,12,18 * * 1-5"}',
    "ops/heartbeat": "{every: 600}",
}


def busy(at: Node, *, iterations: int) -> Seen:
    """Executions that failed, that wait and that ended, schedules, a credential and a token."""
    priced = NIGHT.lstrip().replace("{size: 12,", f"{{size: {iterations},")
    good = priced.replace('raise ValueError("card declined: " + words)', "pass")
    register(at, INVOICE)
    older = good.partition("    next:\n      arcs:\n        - {step: apologize")[0]
    for text in (older, priced, good, good):
        start(at, text, "shop/orders")
    deployed = start(at, DEPLOY, "ops/deploy")
    assert at.there("cancel", deployed, "--reason", "not today").code == 0
    failed = start(at, priced, "shop/orders")
    waiting = start(at, DEPLOY, "ops/deploy")
    for path, schedule in SCHEDULES.items():
        playbook = "shop/orders" if path.startswith("shop") else "ops/deploy"
        trigger = f"""
apiVersion: noetl.io/v2
kind: Trigger
metadata: {{name: {path.split("/")[1]}, path: {path}}}
spec: {{playbook: {playbook}, on: {{schedule: {schedule}}}}}
"""
        register(at, trigger)
    kept = at.there(
        *("credential", "add", "shop/db", "--kind", "generic", "--stdin"),
        stdin=json.dumps({"password": "not shown"}).encode(),
    )
    assert kept.code == 0, kept
    made = at.here("server", "token", "add", "night-shift", "--role", "operator")
    assert made.code == 0, made
    ended(at, failed)
    return {"failed": failed, "waiting": waiting, **found_in(at, failed)}


def ended(at: Node, execution_id: str) -> None:
    """Returns when it has; nobody looks at pictures of what is half done."""
    at.there("events", execution_id, "--follow", "--name", "playbook.processed")


def found_in(at: Node, execution_id: str) -> Seen:
    """The runs that pages about one of them show."""
    told = at.there("events", execution_id, "--name", "step.*", "--json").objects()
    runs = {str(one["step"]): str(one["step_run_id"]) for one in told}
    [last] = [str(one["seq"]) for one in told if one["name"] == "step.failed"][-1:]
    stock = f"{runs['reserve'].partition('.')[0]}.1"
    return {"loop": runs["price_each"], "stock": stock, "last": last}
