"""Playbooks that people watch in the stories, and how they are started."""

import json

from playwright.sync_api import Locator, Page
from tests.system.servers import Node

from noetl.api.home_token import FILE
from noetl.client.client import Client

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

INVOICE = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: invoice, path: shop/invoice, description: Writes the invoice of one order}
workload: {order: 0}
workflow:
  - step: write
    tool:
      - render: {kind: transform, value: {number: "R-{{ workload.order }}"}}
"""
NIGHT = """
apiVersion: noetl.io/v2
kind: Playbook
metadata:
  name: orders
  path: shop/orders
  description: Prices the orders of a day, invoices the large ones and settles the rest
  labels: {team: shop}
workload: {size: 12, large: 5, region: eu}
workflow:
  - step: start
    desc: The orders of the day
    tool:
      - list:
          kind: python
          args: {n: "{{ workload.size }}"}
          code: |
            print("reading the orders of the day")
            result = list(range(n))
          spec: {policy: {rules: [{else: {then: {do: continue,
            set_ctx: {orders: "{{ outcome.result }}"}}}}]}}
    next:
      arcs:
        - {step: nothing, when: "{{ ctx.orders | length == 0 }}"}
        - {step: price_each}
  - step: nothing
    tool: [{say: {kind: noop}}]
  - step: price_each
    loop:
      in: "{{ ctx.orders }}"
      iterator: order
      spec: {mode: parallel, max_in_flight: 4, policy: {on_failure: continue}}
    tool:
      - price:
          kind: python
          args: {o: "{{ iter.order }}"}
          code: |
            print("priced", o)
            result = 100 // (o - 7)
    next:
      spec: {mode: inclusive}
      arcs:
        - {step: invoice, when: "{{ workload.size > workload.large }}", args: {order: 8812}}
        - {step: export, when: "{{ workload.region == 'us' }}"}
        - {step: reserve}
  - step: invoice
    tool:
      - child: {kind: playbook, path: shop/invoice, args: {order: "{{ args.order }}"}}
  - step: export
    tool: [{customs: {kind: noop}}]
  - step: reserve
    spec:
      policy:
        admit:
          rules:
            - {when: "{{ workload.size > 0 }}", then: {allow: true}}
            - else: {then: {allow: false}}
    tool:
      - stock:
          kind: python
          code: |
            import time
            time.sleep(0.3)
            raise TimeoutError("the warehouse is busy")
          spec:
            policy:
              rules:
                - when: "{{ outcome.status == 'error' and _attempt < 3 }}"
                  then: {do: retry, attempts: 3, delay: 0.4}
                - else: {then: {do: continue}}
    next: {arcs: [{step: settle}]}
  - step: settle
    tool:
      - charge:
          kind: python
          args: {words: order 8812}
          code: |
            print("charging", words)
            raise ValueError("card declined: " + words)
    next:
      arcs:
        - {step: apologize, when: "{{ event.name == 'step.failed' and workload.region == 'us' }}"}
  - step: apologize
    tool: [{mail: {kind: noop}}]
"""


def client(at: Node) -> Client:
    """Asks its server as the owner; a command would be a process for each question."""
    token = at.home / FILE
    return Client(at.url, token.read_text().strip() if token.exists() else None)


def register(at: Node, *texts: str) -> None:
    with client(at) as asking:
        for text in texts:
            asking.register(text)


def start(at: Node, text: str, path: str, **payload: object) -> str:
    """Register a playbook and execute it; its execution."""
    with client(at) as asking:
        asking.register(text)
        return asking.execute(path, payload=payload).execution_id


def status(page: Page) -> Locator:
    """The status at the top of the page of an execution."""
    return page.locator("header [data-status]")
