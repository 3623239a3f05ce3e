"""Somebody sees why arcs were taken or not, what was attempted again, and what a run started."""

import re

from playwright.sync_api import Page, expect
from tests.system.servers import Node
from tests.ui.stories import INVOICE, NIGHT, register, start, status


def test_arcs_attempts_and_children_are_explained(at: Node, page: Page) -> None:
    register(at, INVOICE)
    begun = start(at, NIGHT.replace("path: shop/orders", "path: shop/night"), "shop/night")
    page.goto(f"{at.url}/ui/executions/{begun}")
    expect(status(page)).to_have_text("Failed")

    steps = page.get_by_label("Step runs")
    expect(steps).to_contain_text("12 / 12")
    expect(steps).to_contain_text("1 failed")
    steps.get_by_role("button", name="stock", exact=True).click()
    details = page.get_by_label("Details", exact=True)
    for word in ("Attempt 1", "Attempt 2", "Attempt 3"):
        expect(details.get_by_text(word, exact=True)).to_be_visible()
    expect(details.locator("[data-status=retried]")).to_have_count(2)
    expect(details.locator("[data-status=passed]")).to_have_text("Went on")
    steps.get_by_role("button", name="charge", exact=True).click()
    expect(details.get_by_text("Printed lines", exact=True)).to_be_visible()
    expect(details.get_by_text("charging order 8812", exact=True)).to_be_visible()

    page.get_by_role("tab", name="Graph", exact=True).click()
    graph = page.locator(".svelte-flow")
    graph.get_by_text("start", exact=True).click()
    arcs = page.get_by_label("Arcs of start", exact=True)
    expect(arcs).to_contain_text("not taken: its guard was false")
    expect(arcs).to_contain_text(re.compile(r"price_each.*taken", re.S))
    graph.get_by_text("reserve", exact=True).click()
    reserved = page.get_by_label("Arcs of reserve", exact=True)
    expect(reserved).to_contain_text("Admission: 1 token admitted, 0 refused")

    child = page.get_by_label("Child executions").get_by_role("link", name="shop/invoice")
    child.click()
    expect(status(page)).to_have_text("Completed")
    expect(page.get_by_text("Started by", exact=True)).to_be_visible()
    page.get_by_role("link", name=begun, exact=True).click()
    expect(page).to_have_url(re.compile(f"/ui/executions/{begun}$"))


def test_an_order_can_be_copied_as_a_command(at: Node, page: Page) -> None:
    register(at, INVOICE.replace("shop/invoice", "shop/bill").replace("order: 0", "order: none"))
    page.goto(f"{at.url}/ui/playbooks/shop/bill")
    page.get_by_role("button", name="Run", exact=True).click()
    form = page.get_by_role("dialog")
    form.get_by_label("order", exact=True).fill("8 & 12")
    command = "noetl execute shop/bill --version 1 --set 'order=8 & 12'"
    expect(form.get_by_text(command, exact=True)).to_be_visible()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    form.get_by_role("button", name="Copy as command", exact=True).click()
    page.wait_for_function(
        "async (command) => (await navigator.clipboard.readText()) === command", arg=command
    )
