"""Somebody opens a long loop, goes to the iteration that failed, and back in time."""

from playwright.sync_api import Page, expect
from tests.system.servers import Node
from tests.ui.stories import start, status

MANY = 10_000
"""Enough that the log is not read as a whole."""
LOOP = f"""
apiVersion: noetl.io/v2
kind: Playbook
metadata: {{name: long, path: shop/long}}
workflow:
  - step: start
    tool:
      - note: {{kind: noop, spec: {{policy: {{rules: [{{else: {{then: {{do: continue,
          set_ctx: {{said: "before the loop"}}}}}}}}]}}}}}}
    next: {{arcs: [{{step: each}}]}}
  - step: each
    loop:
      in: "{{{{ range({MANY}) | list }}}}"
      iterator: n
      spec: {{mode: parallel, policy: {{on_failure: continue}}}}
    tool:
      - halve: {{kind: transform, value: "{{{{ 1 // (iter.n - 7500) }}}}"}}
"""


def test_one_iteration_of_thousands_is_looked_at(at: Node, page: Page) -> None:
    begun = start(at, LOOP, "shop/long")
    page.goto(f"{at.url}/ui/executions/{begun}")
    expect(status(page)).to_have_text("Completed")
    page.reload()
    steps = page.get_by_label("Step runs")
    expect(steps).to_contain_text(f"{MANY:,} / {MANY:,}")
    expect(steps).to_contain_text("1 failed")
    steps.get_by_role("button", name="each", exact=True).click()
    details = page.get_by_label("Details")
    details.get_by_label("Iteration").fill("7500")
    expect(details).to_contain_text("division")
    details.get_by_label("Iteration").fill("7501")
    expect(details.locator("[data-status=done]").nth(1)).to_be_visible()

    page.goto(f"{at.url}/ui/executions/{begun}?tab=values&at=8")
    expect(page.get_by_text("ctx at that time")).to_be_visible()
    expect(page.get_by_text("before the loop")).to_have_count(0)
    page.get_by_role("button", name="Now").click()
    expect(page.get_by_text("before the loop")).to_be_visible()
