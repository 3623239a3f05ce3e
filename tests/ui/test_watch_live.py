"""Somebody watches a run live, answers what it waits for, and sees it end."""

import pytest
from playwright.sync_api import Page, expect
from tests.system.servers import Node
from tests.ui.stories import DEPLOY, start, status


@pytest.fixture(scope="module")
def at(alone: Node) -> Node:
    """These stories count what is there."""
    return alone


def test_a_run_is_watched_approved_and_seen_to_end(at: Node, page: Page) -> None:
    page.goto(f"{at.url}/")
    expect(page.get_by_text("Nothing has run yet")).to_be_visible()
    execution_id = start(at, DEPLOY, "ops/deploy")
    page.get_by_role("link", name="ops/deploy").click()
    expect(page).to_have_url(f"{at.url}/ui/executions/{execution_id}")
    expect(status(page)).to_have_text("Running")

    waits = page.get_by_label("Why it waits")
    expect(waits.get_by_text("Ship release 4.2?")).to_be_visible()
    waits.get_by_label("ticket").fill("OPS-7")
    waits.get_by_role("button", name="Approve", exact=True).click()
    expect(status(page)).to_have_text("Completed")
    expect(waits).to_have_count(0)
    expect(page.get_by_role("button", name="ship", exact=True)).to_be_visible()

    page.get_by_role("tab", name="Values").click()
    expect(page.get_by_text("shipped")).to_be_visible()
    page.get_by_role("tab", name="Output").click()
    expect(page.get_by_text("built", exact=True)).to_be_visible()


def test_a_run_is_paused_resumed_and_cancelled(at: Node, page: Page) -> None:
    begun = start(at, DEPLOY, "ops/deploy")
    page.goto(f"{at.url}/ui/executions/{begun}")
    page.get_by_role("button", name="Pause", exact=True).click()
    expect(page.get_by_role("dialog").get_by_text(f"noetl pause {begun}")).to_be_visible()
    page.get_by_role("button", name="Pause it").click()
    expect(status(page)).to_have_text("Paused")
    page.get_by_role("button", name="Resume", exact=True).click()
    page.get_by_role("button", name="Resume it").click()
    expect(status(page)).to_have_text("Running")
    page.get_by_role("button", name="Cancel", exact=True).click()
    page.get_by_role("dialog").get_by_label("Reason").fill("wrong release")
    page.get_by_role("button", name="Cancel it").click()
    expect(status(page)).to_have_text("Cancelled")
    expect(page.get_by_text("wrong release")).to_be_visible()
