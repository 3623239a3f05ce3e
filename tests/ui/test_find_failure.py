"""Somebody looks for what failed, sees why at once, and restarts it."""

import re

from playwright.sync_api import Page, expect
from tests.system.servers import Node
from tests.ui.stories import DEPLOY, HOSTILE, SHOP, start, status


def test_a_failure_is_found_explained_and_restarted(at: Node, page: Page) -> None:
    start(at, DEPLOY.replace("ops/deploy", "found/deploy"), "found/deploy")
    failed = start(at, SHOP.replace("shop/orders", "found/orders"), "found/orders")
    page.goto(f"{at.url}/ui/executions?path=found")
    expect(page.get_by_role("link", name="found/orders")).to_be_visible()
    expect(page.get_by_role("link", name="found/deploy")).to_be_visible()
    page.get_by_role("button", name="Failed").click()
    expect(page).to_have_url(re.compile("status=failed"))
    expect(page.get_by_role("link", name="found/deploy")).to_have_count(0)
    page.get_by_role("link", name="found/orders").click()

    why = page.get_by_label("Why it failed")
    expect(why).to_contain_text(f"card declined: {HOSTILE}")
    expect(why).to_contain_text("settle")
    expect(why).to_contain_text("charge")
    expect(page).to_have_title("found/orders · NoETL")
    steps = page.get_by_label("Step runs")
    expect(steps).to_contain_text("12 / 12")
    steps.get_by_role("button", name="charge").click()
    expect(page.get_by_label("Details")).to_contain_text("Traceback")

    page.get_by_role("button", name="Restart what failed").click()
    page.get_by_role("button", name="Restart", exact=True).click()
    expect(page.get_by_text("Restarted from")).to_be_visible()
    expect(page.get_by_role("link", name=failed)).to_be_visible()
    expect(status(page)).to_have_text("Failed")
    page.go_back()
    expect(page).to_have_url(re.compile(failed))


def test_the_log_is_searched_and_an_event_is_shared_by_its_address(at: Node, page: Page) -> None:
    failed = start(at, SHOP, "shop/orders")
    page.goto(f"{at.url}/ui/executions/{failed}?tab=events")
    expect(status(page)).to_have_text("Failed")
    # The list may be at its end, which it follows while the execution runs.
    expect(page.get_by_text(re.compile(r"^\d{2,} events$"))).to_be_visible()
    page.get_by_label("Search in events").fill("ctx.patched")
    expect(page.get_by_text(re.compile("^1 match"))).to_be_visible()
    page.get_by_role("button", name="ctx.patched").click()
    shared = page.url
    page.goto("about:blank")
    page.goto(shared)
    expect(page.get_by_label("Event", exact=True)).to_contain_text('"orders"')


def test_what_happens_during_a_search_is_searched(at: Node, page: Page) -> None:
    begun = start(at, DEPLOY, "ops/deploy")
    page.goto(f"{at.url}/ui/executions/{begun}?tab=events&q=wait.")
    expect(page.get_by_text(re.compile("^1 match$"))).to_be_visible()
    assert at.there("approve", begun, "--set", "ticket=OPS-9").code == 0
    expect(page.get_by_role("button", name="wait.done")).to_be_visible()


def test_what_is_not_there_is_said(at: Node, page: Page) -> None:
    page.goto(f"{at.url}/ui/executions/01nothing")
    expect(page.get_by_text("no execution '01nothing'")).to_be_visible()
    page.goto(f"{at.url}/ui/executions?path=found&status=queued")
    expect(page.get_by_text("No execution matches")).to_be_visible()
    page.goto(f"{at.url}/ui/nowhere")
    expect(page.get_by_text("There is no page at this address")).to_be_visible()
