"""Somebody asks what is new in a version: in its graph, and in its text."""

import re

from playwright.sync_api import Page, expect
from tests.system.servers import Node
from tests.ui.stories import register

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
LONG = FIRST + "".join(
    f"  - step: more{number}\n    desc: One of so many that only the start is read at once\n"
    "    tool: [{note: {kind: noop}}]\n"
    for number in range(60)
)
NIGHTLY = """
apiVersion: noetl.io/v2
kind: Trigger
metadata: {name: nightly, path: shop/nightly}
spec: {playbook: shop/ship, on: {schedule: {cron: "0 3 * * *"}}}
"""

COLOUR = """() => {
  const one = document.body.appendChild(document.createElement("i"));
  one.style.color = "var(--accent)";
  const { color } = getComputedStyle(one);
  one.remove();
  return color;
}"""
"""Of the keys of a text, as the browser writes it."""


def test_two_versions_are_compared_by_graph_and_text(at: Node, page: Page) -> None:
    register(at, FIRST, SECOND, NIGHTLY)
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
    register(at, FIRST, NIGHTLY)
    page.goto(f"{at.url}/ui/playbooks")
    expect(page.get_by_role("link", name="shop/ship")).to_be_visible()
    expect(page.get_by_role("link", name="shop/nightly")).to_have_count(0)


def test_both_texts_are_coloured_as_soon_as_they_are_shown(at: Node, page: Page) -> None:
    long = LONG.replace("path: shop/ship", "path: shop/lines")
    register(at, long, long.replace("more59", "last"))
    # A page that has no time left: what is only coloured then is never coloured here.
    page.add_init_script("window.requestIdleCallback = () => 0")
    page.goto(f"{at.url}/ui/playbooks/shop/lines?tab=compare")
    for side, step in (("Text before", "more59"), ("Text after", "last")):
        line = page.get_by_label(side).locator(".cm-line", has_text=step)
        expect(line.locator("span", has_text="step").first).to_have_css(
            "color", page.evaluate(COLOUR)
        )
