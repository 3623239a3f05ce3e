"""Somebody looks when a schedule is due, pauses it, and starts what was missed."""

import re

from playwright.sync_api import Page, expect
from tests.system.servers import Node
from tests.ui.stories import register, start

REPORT = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: report, path: shop/report}
workflow: [{step: start, tool: [{note: {kind: noop}}]}]
"""
NIGHTLY = """
apiVersion: noetl.io/v2
kind: Trigger
metadata: {name: reports, path: shop/reports}
spec: {playbook: shop/report, on: {schedule: {cron: "0 3 * * *"}}}
"""


def test_a_schedule_is_paused_resumed_and_backfilled(at: Node, page: Page) -> None:
    start(at, REPORT, "shop/report")
    register(at, NIGHTLY)
    page.goto(f"{at.url}/ui/triggers")
    row = page.get_by_role("row").filter(has=page.get_by_role("link", name="shop/reports"))
    strip = page.get_by_label("Next times").locator(".line").filter(has_text="shop/reports")
    expect(strip.locator(".mark").nth(5)).to_be_visible()
    expect(strip).to_contain_text(re.compile("[67] starts"))
    row.get_by_role("button", name="Pause").click()
    expect(strip).to_contain_text("paused")
    row.get_by_role("button", name="Resume").click()
    expect(strip).to_contain_text(re.compile("[67] starts"))

    row.get_by_role("button", name="Backfill").click()
    form = page.get_by_role("dialog")
    form.get_by_label("From").fill("2026-01-01T00:00")
    form.get_by_label("To").fill("2026-01-03T23:00")
    form.get_by_role("button", name="Show the times").click()
    expect(form).to_contain_text("3 planned times")
    expect(form).to_contain_text("Nothing was started yet")
    assert len(at.there("list", "--path", "shop/report", "--json").objects()) == 1
    form.get_by_role("button", name="Start 3 executions").click()
    expect(form.get_by_role("link")).to_have_count(3)
    form.get_by_role("link").first.click()
    expect(page).to_have_url(re.compile("/ui/executions/"))
    expect(page.get_by_text("Completed").first).to_be_visible()
