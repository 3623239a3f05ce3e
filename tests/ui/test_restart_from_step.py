"""Somebody restarts from a step, or the iterations that failed, and sees before what that means."""

import re

from playwright.sync_api import Page, expect
from tests.system.servers import Node
from tests.ui.stories import start, status

EACH = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: each, path: shop/each}
workflow:
  - step: start
    tool: [{look: {kind: noop}}]
    next: {arcs: [{step: halve}]}
  - step: halve
    loop: {in: [3, 2, 1, 0], iterator: n, spec: {policy: {on_failure: continue}}}
    tool: [{cut: {kind: transform, value: "{{ 6 // iter.n }}"}}]
    next: {arcs: [{step: post}]}
  - step: post
    tool: [{send: {kind: noop}}]
"""
PAID = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: paid, path: shop/paid}
workflow:
  - step: start
    tool: [{money: {kind: wait, signal: paid}}]
"""


def test_a_step_and_failed_iterations_are_run_again(at: Node, page: Page) -> None:
    begun = start(at, EACH, "shop/each")
    page.goto(f"{at.url}/ui/executions/{begun}")
    expect(status(page)).to_have_text("Completed")
    page.get_by_role("button", name="halve", exact=True).click()
    page.get_by_role("button", name="Restart failed iterations").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text(f"noetl restart {begun} --from halve:3")).to_be_visible()
    planned = dialog.get_by_label("What would be run again")
    expect(planned).to_contain_text("halve:3 (1 iteration)")
    expect(planned).to_contain_text("2 recorded tasks forgotten in halve, post; 4 tasks taken over")

    dialog.get_by_label("Run again", exact=True).select_option("post")
    expect(page).to_have_url(re.compile("restart=post"))
    expect(planned).to_contain_text("1 recorded task forgotten in post; 5 tasks taken over")
    dialog.get_by_role("button", name="Restart", exact=True).click()
    expect(page.get_by_text("Restarted from")).to_be_visible()
    expect(status(page)).to_have_text("Completed")
    page.go_back()
    expect(page.get_by_role("dialog")).to_be_visible()


def test_a_signal_is_sent_to_what_waits_for_it(at: Node, page: Page) -> None:
    page.goto(f"{at.url}/ui/executions/{start(at, PAID, 'shop/paid')}")
    page.get_by_label("Why it waits").get_by_role("button", name="Send paid").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("Name")).to_have_value("paid")
    dialog.get_by_label("Data (JSON)").fill("{not json")
    dialog.get_by_role("button", name="Send").click()
    expect(dialog.get_by_text("The data is not JSON")).to_be_visible()
    dialog.get_by_label("Data (JSON)").fill('{"amount": 12}')
    dialog.get_by_role("button", name="Send").click()
    expect(status(page)).to_have_text("Completed")
