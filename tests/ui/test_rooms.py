"""Somebody answers what waits for people, and looks who is there."""

import pytest
from playwright.sync_api import Page, expect
from tests.system.servers import Node
from tests.ui.stories import DEPLOY, start


@pytest.fixture(scope="module")
def at(alone: Node) -> Node:
    """These stories count what is there."""
    return alone


def test_an_approval_is_rejected_from_the_inbox(at: Node, page: Page) -> None:
    page.goto(f"{at.url}/ui/waiting")
    expect(page.get_by_text("Nothing waits for a person")).to_be_visible()
    begun = start(at, DEPLOY, "ops/deploy")
    expect(page.get_by_text("Ship release 4.2?")).to_be_visible()
    page.get_by_label("ticket").fill("OPS-8")
    page.get_by_label("Reason").fill("not today")
    page.get_by_role("button", name="Reject", exact=True).click()
    expect(page.get_by_text("Nothing waits for a person")).to_be_visible()
    told = at.there("events", begun, "--name", "wait.done", "--json")
    assert "not today" in told.out, told


FORM = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: refund, path: shop/refund}
workflow:
  - step: ask
    tool:
      - ok:
          kind: wait
          approval:
            title: Refund order 8812?
            form:
              amount: {type: number, title: Amount in euros}
              way: {choices: [card, voucher]}
              goods: {type: boolean, title: Goods are back}
              note: {required: false}
"""


def test_an_approval_is_answered_by_its_form(at: Node, page: Page) -> None:
    begun = start(at, FORM, "shop/refund")
    page.goto(f"{at.url}/ui/executions/{begun}")
    waits = page.get_by_label("Why it waits")
    waits.get_by_label("Amount in euros").fill("12.5")
    waits.get_by_label("way").select_option("voucher")
    waits.get_by_label("Goods are back").select_option("Yes")
    expect(waits.get_by_label("note (optional)")).to_be_visible()
    waits.get_by_role("button", name="Approve", exact=True).click()
    expect(page.locator("header [data-status]")).to_have_text("Completed")
    [told] = at.there("events", begun, "--name", "wait.done", "--json").objects()
    given = told["data"]["result"]
    assert (given["amount"], given["way"], given["goods"]) == (12.5, "voucher", True)


def test_servers_workers_and_pools_are_shown(at: Node, page: Page) -> None:
    page.goto(f"{at.url}/ui/")
    page.get_by_role("link", name="Runtime").click()
    expect(page.get_by_text("0 of")).to_be_visible()
    expect(page.get_by_text("(this one)")).to_be_visible()
