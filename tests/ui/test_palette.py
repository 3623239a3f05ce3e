"""Somebody goes everywhere by typing."""

import re

from playwright.sync_api import Page, expect
from tests.system.servers import Node
from tests.ui.stories import DEPLOY, register, start

WEEKLY = """
apiVersion: noetl.io/v2
kind: Trigger
metadata: {name: weekly, path: ops/weekly}
spec: {playbook: ops/deploy, on: {schedule: {cron: "0 3 * * 1"}}}
"""


def test_pages_playbooks_executions_and_actions_are_found_by_typing(at: Node, page: Page) -> None:
    begun = start(at, DEPLOY, "ops/deploy")
    register(at, WEEKLY)
    page.goto(f"{at.url}/ui/")
    expect(page.get_by_role("heading", name="Executions")).to_be_visible()

    def go(text: str, option: str) -> None:
        page.keyboard.press("Control+k")
        page.get_by_role("combobox", name="Go to").fill(text)
        first = page.get_by_label("Found").get_by_role("option").first
        expect(first).to_contain_text(option)
        page.keyboard.press("Enter")
        expect(page.get_by_role("dialog")).to_have_count(0)

    go("runtime", "Runtime")
    expect(page).to_have_url(re.compile("/ui/runtime$"))
    go("ops/dep", "ops/deploy")
    expect(page).to_have_url(re.compile("/ui/playbooks/ops/deploy$"))
    go("ops/weekly", "Triggers")
    expect(page).to_have_url(re.compile("/ui/playbooks/ops/weekly$"))
    go(begun[:12], begun)
    expect(page).to_have_url(re.compile(f"/ui/executions/{begun}$"))
    go("show failed", "Show failed executions")
    expect(page).to_have_url(re.compile("status=failed"))
    go("colours", "Change colours")
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    page.keyboard.press("Control+k")
    page.get_by_role("combobox", name="Go to").fill("no such thing")
    expect(page.get_by_text("Nothing found")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


AT_ONCE = """async () => {
  const press = (target, key, ctrlKey) => {
    const how = { key, ctrlKey, bubbles: true, cancelable: true };
    target.dispatchEvent(new KeyboardEvent("keydown", how));
  };
  press(document.querySelector("dialog input"), "Enter", false);
  for (let turn = 0; turn < 10; turn++) await null; // the page has changed; no further event came
  press(window, "k", true);
}"""


def test_who_types_on_at_once_is_heard(at: Node, page: Page) -> None:
    page.goto(f"{at.url}/ui/")
    expect(page.get_by_role("heading", name="Executions")).to_be_visible()
    page.keyboard.press("Control+k")
    page.get_by_role("combobox", name="Go to").fill("runtime")
    page.evaluate(AT_ONCE)
    expect(page).to_have_url(re.compile("/ui/runtime$"))
    page.get_by_role("combobox", name="Go to").fill("audit")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/ui/audit$"))
