"""Somebody finds a playbook, looks at its graph, runs it with a value, and watches the graph."""

import re

from playwright.sync_api import Page, expect
from tests.system.servers import Node
from tests.ui.stories import register, status

FORK = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: fork, path: shop/fork}
workload: {size: 3, region: eu, cold: false}
workflow:
  - step: start
    tool: [{look: {kind: noop}}]
    next:
      spec: {mode: inclusive}
      arcs:
        - {step: wide, when: "{{ workload.size > 9 }}"}
        - {step: narrow, when: "{{ workload.size <= 9 }}"}
  - step: wide
    tool: [{a: {kind: shell, command: "echo wide"}}]
  - step: narrow
    tool: [{b: {kind: noop}}]
"""


def test_a_playbook_is_run_from_its_form_and_its_arcs_say_what_was_taken(
    at: Node, page: Page
) -> None:
    register(at, FORK)
    page.goto(f"{at.url}/ui/playbooks")
    page.get_by_role("link", name="shop/fork").click()
    graph = page.locator(".svelte-flow")
    expect(graph.get_by_text("narrow", exact=True)).to_be_visible()
    page.get_by_role("tab", name="Text").click()
    expect(page.get_by_text("metadata: {name: fork, path: shop/fork}")).to_be_visible()

    page.get_by_role("button", name="Run").click()
    form = page.get_by_role("dialog")
    expect(form.get_by_label("region")).to_have_attribute("placeholder", "eu")
    form.get_by_label("size").fill("12")
    form.get_by_role("button", name="Run", exact=True).click()
    expect(page).to_have_url(re.compile("/ui/executions/"))
    expect(status(page)).to_have_text("Completed")

    page.get_by_role("tab", name="Graph").click()
    expect(graph.get_by_text("not run")).to_have_count(1)
    refused = graph.get_by_text("not taken").locator("..")
    expect(refused).to_contain_text("workload.size <= 9")
    graph.get_by_text("wide", exact=True).click()
    expect(page.get_by_label("Details").first).to_contain_text("wide")
    page.get_by_role("tab", name="Values").click()
    expect(page.get_by_text('"size": 12')).to_be_visible()
