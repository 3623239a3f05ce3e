"""Somebody narrows the list, keeps the view, and restarts and cancels many at once."""

import re

import pytest
from playwright.sync_api import Page, expect
from tests.system.servers import Node
from tests.ui.stories import DEPLOY, SHOP, client, start

LABELLED = SHOP.replace("path: shop/orders}", "path: shop/orders, labels: {team: shop}}")


@pytest.fixture(scope="module")
def at(alone: Node) -> Node:
    """These stories count what is there."""
    return alone


def test_filters_make_a_view_that_is_kept(at: Node, page: Page) -> None:
    start(at, LABELLED, "shop/orders")
    deploy = start(at, DEPLOY, "ops/deploy")
    with client(at) as asking:
        keyed = asking.execute("ops/deploy", key="release-42").execution_id
    shop, ops = (page.get_by_role("link", name=name) for name in ("shop/orders", "ops/deploy"))
    page.goto(f"{at.url}/ui/executions")
    expect(ops).to_have_count(2)
    page.get_by_label("Text").fill("CARD DECLINED")
    expect(ops).to_have_count(0)
    expect(shop).to_have_count(1)
    page.get_by_label("Text").fill("")
    page.get_by_role("button", name="More filters").click()
    page.get_by_label("Label of the playbook").fill("team=shop")
    expect(ops).to_have_count(0)
    page.get_by_role("button", name="Save as view").click()
    page.get_by_label("Name of the view").fill("Ours")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_label("Saved views").get_by_role("link", name="Ours")).to_be_visible()

    page.goto(f"{at.url}/ui/executions?key=release-42")
    expect(page.get_by_role("link", name="ops/deploy")).to_have_attribute(
        "href", f"/ui/executions/{keyed}"
    )
    page.get_by_role("link", name="Ours").click()
    expect(page).to_have_url(re.compile("label=team%3Dshop"))
    expect(shop).to_have_count(1)
    page.goto(f"{at.url}/ui/executions?from=2001-01-01T00:00&to=2001-01-02T00:00")
    expect(page.get_by_text("No execution matches")).to_be_visible()
    page.goto(f"{at.url}/ui/executions?id={deploy}")
    expect(ops).to_have_count(1)


def test_many_are_counted_before_they_are_cancelled(at: Node, page: Page) -> None:
    begun = [start(at, DEPLOY, "ops/deploy") for _ in range(3)]
    failed = start(at, SHOP, "shop/orders")
    page.goto(f"{at.url}/ui/executions")
    for one in (*begun, failed):
        page.get_by_label(f"Choose {one}").check()
    expect(
        page.locator(f"a[href='/ui/executions/{failed}'] >> xpath=ancestor::tr")
    ).to_contain_text("Failed")
    chosen = page.get_by_label("Chosen executions")
    expect(chosen).to_contain_text("4 executions chosen")
    chosen.get_by_role("button", name="Cancel 3").click()
    asked = page.get_by_role("dialog")
    expect(asked).to_contain_text("Cancel 3 executions?")
    expect(asked).to_contain_text("1 of the 4 chosen has ended and is left out")
    asked.get_by_role("button", name="Cancel 3").click()
    expect(asked).to_have_count(0)
    for one in begun:
        expect(page.locator(f"tr:has(a[href='/ui/executions/{one}'])")).to_contain_text("Cancelled")

    page.get_by_label(f"Choose {failed}").check()
    page.get_by_role("button", name="Restart 1").click()
    page.get_by_role("dialog").get_by_role("button", name="Restart 1").click()
    expect(page.get_by_role("link", name="shop/orders")).to_have_count(3)


def test_the_runs_of_a_playbook_are_compared_step_by_step(at: Node, page: Page) -> None:
    page.goto(f"{at.url}/ui/playbooks/shop/orders?tab=runs")
    grid = page.get_by_label("Run history")
    expect(grid.get_by_role("rowheader")).to_have_text(["start", "price_each", "settle"])
    row = grid.locator("tr", has_text="settle")
    expect(row.locator("[data-status=failed]").first).to_be_visible()
    expect(
        grid.locator("tr", has_text="price_each").locator("[data-status=done]").first
    ).to_be_visible()
    row.locator("[data-status=failed]").first.click()
    expect(page).to_have_url(re.compile(r"/ui/executions/\w+\?tab=graph&step=settle"))
    expect(page.get_by_label("Details").first).to_contain_text("settle")
