"""Somebody without a mouse goes from the list to why a run failed, and into its graph."""

import re

from playwright.sync_api import Page, expect
from tests.system.servers import Node
from tests.ui.stories import DEPLOY, SHOP, start, status

ORDERS = SHOP.replace("shop/orders", "keys/orders")
FOCUSED = "() => document.activeElement?.textContent?.trim() ?? ''"


def until_focused(page: Page, name: str) -> None:
    """Presses Tab until something of this name has the focus, once around at the most."""
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate(FOCUSED) == name:
            return
    raise AssertionError(f"Tab never reaches {name!r}")


def test_a_failure_is_looked_into_without_a_mouse(at: Node, page: Page) -> None:
    begun = start(at, ORDERS, "keys/orders")
    page.goto(f"{at.url}/ui/executions?status=failed&path=keys")
    expect(page.get_by_role("link", name="keys/orders")).to_be_visible()
    page.keyboard.press("Tab")
    assert page.evaluate(FOCUSED) == "Skip to content"
    page.keyboard.press("Enter")
    until_focused(page, "keys/orders")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(f"/ui/executions/{begun}$"))
    expect(status(page)).to_have_text("Failed")

    until_focused(page, "Steps")
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tab", name="Graph", exact=True)).to_be_focused()
    expect(page).to_have_url(re.compile("tab=graph"))
    expect(page.locator(".svelte-flow__node")).to_have_count(3)
    page.locator(".svelte-flow__node").last.focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("step=settle"))
    expect(page.get_by_label("Details", exact=True).first).to_contain_text("settle")
    page.get_by_role("tab", name="Graph", exact=True).focus()
    page.keyboard.press("End")
    expect(page.get_by_role("tab", name="Try a template")).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tab", name="Steps", exact=True)).to_be_focused()


def test_a_dialog_is_answered_without_a_mouse(at: Node, page: Page) -> None:
    page.goto(f"{at.url}/ui/executions/{start(at, DEPLOY, 'ops/deploy')}")
    expect(page.get_by_label("Why it waits")).to_be_visible()
    until_focused(page, "Cancel")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog").get_by_label("Reason")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_role("button", name="Cancel", exact=True)).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog").get_by_label("Reason")).to_be_focused()
    page.keyboard.type("wrong release")
    page.keyboard.press("Enter")
    expect(status(page)).to_have_text("Cancelled")
    expect(page.get_by_text("wrong release")).to_be_visible()


def test_a_text_is_copied_where_the_page_came_by_plain_http(at: Node, page: Page) -> None:
    # Browsers keep the clipboard from pages that another machine serves by HTTP.
    page.add_init_script("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    begun = start(at, DEPLOY, "ops/deploy")
    page.goto(f"{at.url}/ui/executions/{begun}?tab=events")
    page.get_by_role("button", name=f"Copy the id {begun}").click()
    page.get_by_label("Search in events").focus()
    page.keyboard.press("Control+v")
    expect(page.get_by_label("Search in events")).to_have_value(begun)
