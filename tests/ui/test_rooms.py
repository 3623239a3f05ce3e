"""Somebody answers what waits for people, pauses a schedule, and looks who is there."""

from playwright.sync_api import Page, expect
from tests.system.servers import Node
from tests.ui.stories import DEPLOY, SHOP, start

NIGHTLY = """
apiVersion: noetl.io/v2
kind: Trigger
metadata: {name: nightly, path: shop/nightly}
spec: {playbook: shop/orders, on: {schedule: {cron: "0 3 * * *"}}}
"""


def test_an_approval_is_rejected_from_the_inbox(at: Node, page: Page) -> None:
    page.goto(f"{at.url}/ui/waiting")
    expect(page.get_by_text("Nobody is waited for")).to_be_visible()
    begun = start(at, DEPLOY, "ops/deploy")
    expect(page.get_by_text("Ship release 4.2?")).to_be_visible()
    page.get_by_label("ticket").fill("OPS-8")
    page.get_by_label("Reason").fill("not today")
    page.get_by_role("button", name="Reject", exact=True).click()
    expect(page.get_by_text("Nobody is waited for")).to_be_visible()
    told = at.there("events", begun, "--name", "wait.done", "--json")
    assert "not today" in told.out, told


def test_a_schedule_is_paused_and_resumed(at: Node, page: Page) -> None:
    start(at, SHOP, "shop/orders")
    assert at.there("register", "-", stdin=NIGHTLY.encode()).code == 0
    page.goto(f"{at.url}/ui/triggers")
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_text("Paused", exact=True)).to_be_visible()
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_text("Active")).to_be_visible()


def test_servers_workers_and_pools_are_shown(at: Node, page: Page) -> None:
    page.goto(f"{at.url}/ui/")
    page.get_by_role("link", name="Runtime").click()
    expect(page.get_by_text("0 of")).to_be_visible()
    expect(page.get_by_text("(answers now)")).to_be_visible()
