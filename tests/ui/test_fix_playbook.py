"""Somebody mends a playbook in the editor: sees faults as they type, takes fixes, registers it."""

import re

from playwright.sync_api import Locator, Page, expect
from tests.system.servers import Node
from tests.ui.stories import register

BROKEN = """apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: greet, path: shop/greet}
workload: {name: world}
workflow:
  - step: start
    tool:
      - say: {kind: noop}
    next: {arcs: [{step: finish}]}
  - step: finish
    tool:
      - done: {kind: noop}
"""
OLDER = BROKEN.replace("shop/greet", "shop/older").replace(
    "{arcs: [{step: finish}]}", "[{step: finish}]"
)


def editor(page: Page) -> Locator:
    return page.get_by_label("Text of the playbook")


def state(page: Page) -> Locator:
    return page.get_by_label("State of the text")


PASTE = """(into, text) => {
  const data = new DataTransfer();
  data.setData("text/plain", text);
  const more = { clipboardData: data, bubbles: true, cancelable: true, composed: true };
  into.dispatchEvent(new ClipboardEvent("paste", more));
}"""


def write(page: Page, text: str) -> None:
    """Paste it in place of all that is there."""
    editor(page).click()
    page.keyboard.press("Control+a")
    editor(page).evaluate(PASTE, text)


def test_a_playbook_is_mended_and_registered_as_its_next_version(at: Node, page: Page) -> None:
    register(at, BROKEN)
    page.goto(f"{at.url}/ui/playbooks/shop/greet?tab=edit")
    expect(state(page)).to_contain_text("No findings")
    expect(page.get_by_role("button", name="Register")).to_be_disabled()

    write(page, BROKEN.replace("step: finish}", "step: finsh}"))
    expect(state(page)).to_contain_text("1 error")
    expect(page.locator(".cm-lintRange-error")).to_have_count(1)
    expect(page.get_by_role("button", name="Register")).to_be_disabled()
    findings = page.get_by_label("Findings")
    findings.get_by_role("button", name="Replace 'finsh' by 'finish'").click()
    expect(state(page)).to_contain_text("No findings")

    write(page, BROKEN.replace("done: {kind: noop}", 'done: {kind: shell, command: "echo done"}'))
    expect(state(page)).to_contain_text("No findings")
    drawn = page.get_by_label("Graph of the text")
    expect(drawn.get_by_text("shell")).to_be_visible()
    page.reload()
    expect(page.get_by_text("Draft, kept in this browser")).to_be_visible()
    expect(editor(page)).to_contain_text("echo done")
    expect(state(page)).to_contain_text("No findings")
    page.get_by_role("button", name="Register").click()
    page.get_by_role("dialog").get_by_role("button", name="Register").click()
    expect(page.get_by_text("shop/greet, version 2")).to_be_visible()
    page.get_by_role("link", name="Compare with the version before").click()
    expect(page.get_by_label("Changes of the graph")).to_contain_text("task done changed")


def test_the_editor_offers_what_may_follow(at: Node, page: Page) -> None:
    page.goto(f"{at.url}/ui/playbooks?new=1")
    expect(state(page)).to_contain_text("No findings")
    write(page, BROKEN.replace("say: {kind: noop}", "say: {kind: "))
    page.get_by_label("Text of the playbook").press("Control+Home")
    for _ in range(7):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("End")
    page.keyboard.type("pyth", delay=30)
    offered = page.locator(".cm-tooltip-autocomplete")
    # By the pointer: keys that come at once after the list do not choose from it, they write.
    offered.get_by_text("python", exact=True).click()
    expect(editor(page)).to_contain_text("say: {kind: python")
    page.keyboard.type(', args: {n: "{{ workload.', delay=30)
    expect(offered.get_by_text("name", exact=True)).to_be_visible()
    page.keyboard.press("Escape")


def test_another_dialect_is_translated_with_reasons(at: Node, page: Page) -> None:
    page.goto(f"{at.url}/ui/playbooks?new=1")
    expect(state(page)).to_contain_text("No findings")
    write(page, OLDER)
    page.get_by_role("button", name="Translate to the current language").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("The router holds the arcs and their mode.")
    dialog.get_by_role("button", name="Use the translation").click()
    expect(state(page)).to_contain_text("No findings")
    expect(editor(page)).to_contain_text("arcs:")


def test_a_text_as_long_as_may_be_does_not_stop_the_page(at: Node, page: Page) -> None:
    page.goto(f"{at.url}/ui/playbooks?new=1")
    expect(state(page)).to_contain_text("No findings")
    steps = "".join(f"  - step: s{n}\n    tool: [{{a: {{kind: nop}}}}]\n" for n in range(8_000))
    write(page, BROKEN + steps)
    page.keyboard.type("# typed")
    expect(editor(page)).to_contain_text("# typed")
    expect(state(page)).to_contain_text(re.compile("error"))
    expect(page.get_by_label("Findings")).to_contain_text("more findings")
