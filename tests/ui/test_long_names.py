"""Names may be long and screens narrow: nothing is cut off, and nothing hangs out of its box."""

import re

from playwright.sync_api import Page, expect
from tests.system.servers import Node
from tests.ui.stories import register, start

PATH = (
    "a-department-with-a-very-long-name/and-a-folder-that-is-not-short/reconcile_the_ledgers_of_all"
)
PLAYBOOK = f"""
apiVersion: noetl.io/v2
kind: Playbook
metadata: {{name: long, path: {PATH}}}
workload: {{a_rather_long_name_of_a_value_that_is_given: some text}}
workflow:
  - step: a_step_whose_name_is_longer_than_its_box
    tool: [{{a_task_whose_name_is_longer_than_its_box: {{kind: noop}}}}]
    next: {{arcs: [{{step: the_step_that_nobody_ever_comes_to, when: "{{{{ false }}}}"}}]}}
  - step: the_step_that_nobody_ever_comes_to
    tool: [{{say: {{kind: noop}}}}]
"""
OUTSIDE = """() => [...document.querySelectorAll("main :is(h1, td, .button, .box *), dialog *")]
  .filter((one) => one.getBoundingClientRect().right >
    one.closest(".box, .card, dialog, body").getBoundingClientRect().right + 1)
  .map((one) => one.outerHTML.slice(0, 120))"""
"""What ends to the right of what it is in."""


def test_long_names_have_room_on_a_telephone(at: Node, page: Page) -> None:
    begun = start(at, PLAYBOOK, PATH)
    register(at, PLAYBOOK.replace("some text", "another text"))
    page.set_viewport_size({"width": 390, "height": 844})
    for address, ready in {
        f"executions/{begun}?tab=graph": ".svelte-flow__node",
        f"playbooks/{PATH}?tab=versions": "a:text-is('2')",
        f"playbooks/{PATH}?tab=text": "text=apiVersion",
        f"playbooks/{PATH}": ".svelte-flow__node",
    }.items():
        page.goto(f"{at.url}/ui/{address}")
        expect(page.locator(ready).first).to_be_visible()
        assert page.evaluate(OUTSIDE) == [], address
        assert page.evaluate("document.documentElement.scrollWidth") == 390, address
    page.get_by_role("button", name=re.compile("^Run")).click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("a_rather_long_name")).to_be_visible()
    assert page.evaluate(OUTSIDE) == []


def test_the_graph_beside_a_text_shows_every_step_that_is_written(at: Node, page: Page) -> None:
    start(at, PLAYBOOK, PATH)
    page.goto(f"{at.url}/ui/playbooks/{PATH}?tab=edit")
    steps = page.get_by_label("Graph of the text").locator(".svelte-flow__node")
    expect(steps).to_have_count(2)
    page.locator(".cm-content").click()
    page.keyboard.press("Control+End")
    for name in ("first", "second", "third"):
        page.keyboard.insert_text(f"  - step: {name}\n    tool: [{{say: {{kind: noop}}}}]\n")
    expect(steps).to_have_count(5)
    for number in range(5):
        expect(steps.nth(number)).to_be_in_viewport(ratio=0.99)
