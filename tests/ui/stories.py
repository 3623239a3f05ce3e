"""Playbooks that people watch in the stories, and how they are started."""

import json

from playwright.sync_api import Locator, Page
from tests.system.servers import Node

HOSTILE = "<script>document.title='broken'</script> \u202egnp.exe"
SHOP = f"""
apiVersion: noetl.io/v2
kind: Playbook
metadata: {{name: orders, path: shop/orders}}
workload: {{size: 12}}
workflow:
  - step: start
    tool:
      - list:
          kind: python
          args: {{n: "{{{{ workload.size }}}}"}}
          code: "result = list(range(n))"
          spec: {{policy: {{rules: [{{else: {{then: {{do: continue,
            set_ctx: {{orders: "{{{{ outcome.result }}}}"}}}}}}}}]}}}}
    next: {{arcs: [{{step: price_each}}]}}
  - step: price_each
    loop: {{in: "{{{{ ctx.orders }}}}", iterator: order}}
    tool:
      - price: {{kind: python, args: {{o: "{{{{ iter.order }}}}"}}, code: "print('priced', o)"}}
    next: {{arcs: [{{step: settle}}]}}
  - step: settle
    tool:
      - charge:
          kind: python
          args: {{words: {json.dumps(HOSTILE)}}}
          code: "raise ValueError('card declined: ' + words)"
"""
DEPLOY = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: deploy, path: ops/deploy}
workflow:
  - step: build
    tool: [{make: {kind: shell, command: "echo built"}}]
    next: {arcs: [{step: ask}]}
  - step: ask
    tool:
      - ok: {kind: wait, approval: {title: "Ship release 4.2?", form: {ticket: {type: string}}}}
    next: {arcs: [{step: ship}]}
  - step: ship
    tool: [{go: {kind: shell, command: "echo shipped"}}]
"""


def start(at: Node, text: str, path: str) -> str:
    """Register a playbook and execute it; its execution."""
    registered = at.there("register", "-", stdin=text.encode())
    assert registered.code == 0, registered
    begun = at.there("execute", path, "--json")
    assert begun.code == 0, begun
    return str(begun.objects()[0]["execution_id"])


def status(page: Page) -> Locator:
    """The status at the top of the page of an execution."""
    return page.locator("header [data-status]")
