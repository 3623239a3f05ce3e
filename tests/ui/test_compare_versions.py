"""Somebody asks what is new in a version: in its graph, and in its text."""

import re

from playwright.sync_api import Page, expect
from tests.system.servers import Node

FIRST = """apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: ship, path: shop/ship}
workflow:
  - step: start
    tool: [{look: {kind: noop}}]
    next: {arcs: [{step: pack}]}
  - step: pack
    tool: [{wrap: {kind: noop}}]
    next: {arcs: [{step: post}]}
  - step: post
    tool: [{send: {kind: noop}}]
"""
SECOND = FIRST.replace("{step: post}", "{step: weigh}").replace(
    "  - step: post",
    """  - step: weigh
    tool: [{scale: {kind: shell, command: "echo 3"}}]
    next: {arcs: [{step: post}]}
  - step: post""",
)
NIGHTLY = """
apiVersion: noetl.io/v2
kind: Trigger
metadata: {name: nightly, path: shop/nightly}
spec: {playbook: shop/ship, on: {schedule: {cron: "0 3 * * *"}}}
"""


def test_two_versions_are_compared_by_graph_and_text(at: Node, page: Page) -> None:
    for text in (FIRST, SECOND, NIGHTLY):
        assert at.there("register", "-", stdin=text.encode()).code == 0
    page.goto(f"{at.url}/ui/playbooks")
    page.get_by_role("link", name="shop/ship").click()
    page.get_by_role("tab", name="Versions").click()
    page.get_by_role("link", name="Compare version 2 with the one before").click()

    graph = page.get_by_label("Changes of the graph")
    changes = graph.get_by_role("list").first  # the others are tasks of drawn steps
    expect(changes).to_contain_text("step weigh")
    expect(changes).to_contain_text("arc pack → weigh")
    expect(changes).to_contain_text("arc pack → post")
    expect(graph.locator(".svelte-flow").get_by_text("weigh", exact=True)).to_be_visible()
    text = page.get_by_label("Changes of the text")
    expect(text.get_by_label("Text after")).to_contain_text("echo 3")
    expect(text.get_by_label("Text before")).not_to_contain_text("echo 3")

    page.get_by_label("From version").select_option("2")
    expect(page).to_have_url(re.compile("from=2"))
    expect(page.get_by_text("Both versions have the same text.")).to_be_visible()
    page.set_viewport_size({"width": 390, "height": 800})
    page.get_by_label("From version").select_option("1")
    expect(page.get_by_label("Changes of the text").first).to_contain_text("echo 3")


def test_triggers_are_not_among_the_playbooks(at: Node, page: Page) -> None:
    for text in (FIRST, NIGHTLY):
        assert at.there("register", "-", stdin=text.encode()).code == 0
    page.goto(f"{at.url}/ui/playbooks")
    expect(page.get_by_role("link", name="shop/ship")).to_be_visible()
    expect(page.get_by_role("link", name="shop/nightly")).to_have_count(0)
