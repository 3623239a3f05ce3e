"""Somebody opens a long loop, goes to the iteration that failed, and back in time."""

from playwright.sync_api import Page, expect
from tests.system.servers import Node
from tests.ui.stories import client, start, status

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
NESTED = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: shelves, path: shop/shelves}
workflow:
  - step: each
    loop: {in: [1, 2, 3], iterator: shelf}
    tool:
      - boxes:
          kind: iterator
          in: [5, 4, 6]
          iterator: box
          spec: {policy: {on_failure: continue}}
          tool:
            - cut: {kind: transform, value: "{{ 6 // (iter.box - 5) }}"}
      - count: {kind: transform, value: "{{ _prev | length }}"}
"""


def test_one_iteration_of_thousands_is_looked_at(at: Node, page: Page) -> None:
    begun = start(at, LOOP, "shop/long")
    with client(at) as asking:
        asking.summary(begun, wait=60)  # nobody looks on: that is measured elsewhere
    page.goto(f"{at.url}/ui/executions/{begun}")
    expect(status(page)).to_have_text("Completed")
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


def test_an_iteration_inside_an_iteration_is_looked_at(at: Node, page: Page) -> None:
    begun = start(at, NESTED, "shop/shelves")
    page.goto(f"{at.url}/ui/executions/{begun}")
    expect(status(page)).to_have_text("Completed")
    page.get_by_role("button", name="each", exact=True).click()
    details = page.get_by_label("Details")
    expect(details).to_contain_text("3 iterations done")
    details.get_by_label("Iteration", exact=True).fill("1")
    # The one that failed is inside: this one did not.
    expect(details.locator("p", has_text="iteration 1").locator("[data-status]")).to_have_text(
        "Done"
    )
    inner = details.get_by_label("Loop boxes")
    expect(inner).to_contain_text("2 iterations done, 1 failed")
    inner.get_by_role("button", name="0", exact=True).click()
    expect(inner).to_contain_text("iteration 1/0")
    expect(inner).to_contain_text("division")
    page.reload()
    expect(inner).to_contain_text("division")
    inner.get_by_label("Iteration of boxes").fill("2")
    expect(inner).to_contain_text("iteration 1/2")
    expect(inner.get_by_role("figure", name="Result")).to_contain_text("6")

    page.goto(f"{at.url}/ui/playbooks/shop/shelves?tab=runs")
    row = page.get_by_label("Run history").locator("tr", has_text="each")
    expect(row.locator("[data-status=done]")).to_have_count(1)
