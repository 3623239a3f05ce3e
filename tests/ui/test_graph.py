"""Somebody reads a graph: nothing that is written on it lies on something else."""

import pytest
from playwright.sync_api import Page, expect
from tests.system.servers import Node
from tests.ui.stories import NIGHT, register, start

RECTANGLES = """(all) => all.map((one) => {
  const { left, top, right, bottom } = one.getBoundingClientRect();
  return [one.textContent.trim(), left, top, right, bottom];
})"""
Rectangle = tuple[str, float, float, float, float]


@pytest.mark.parametrize("width", [1440, 390])
def test_no_label_lies_on_another_or_on_a_step(at: Node, page: Page, width: int) -> None:
    register(at, NIGHT.replace("path: shop/orders", "path: shop/drawn"))
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(f"{at.url}/ui/playbooks/shop/drawn")
    labels = page.locator(".svelte-flow__edge-label")
    expect(labels).to_have_count(5)
    expect(page.locator(".svelte-flow__node")).to_have_count(8)
    expect(labels.first).to_be_in_viewport()
    drawn = page.locator(".svelte-flow__edge-label, .svelte-flow__node").evaluate_all(RECTANGLES)
    lying = [
        (one[0], other[0])
        for number, one in enumerate(drawn)
        for other in drawn[number + 1 :]
        if overlap(one, other)
    ]
    assert lying == []


def overlap(one: Rectangle, other: Rectangle) -> bool:
    _, left, top, right, bottom = one
    _, first, above, last, below = other
    return left < last and first < right and top < below and above < bottom


STEPS = 240
LINE = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: line, path: shop/line}
workflow:
""" + "".join(
    f"  - {{step: s{number}, tool: [{{go: {{kind: noop}}}}],"
    f" next: {{arcs: [{{step: s{number + 1}}}]}}}}\n"
    for number in range(STEPS)
)


def test_hundreds_of_steps_are_drawn_as_groups(at: Node, page: Page) -> None:
    text = LINE + f"  - {{step: s{STEPS}, tool: [{{go: {{kind: noop}}}}]}}\n"
    begun = start(at, text, "shop/line")
    page.goto(f"{at.url}/ui/executions/{begun}?tab=graph")
    expect(page.get_by_text(f"{STEPS + 1} steps in 13 groups")).to_be_visible()
    boxes = page.locator(".svelte-flow__node")
    expect(boxes).to_have_count(13)
    expect(boxes.first).to_contain_text("Done")
    expect(boxes.first).to_contain_text("20 runs")
    boxes.first.click()
    expect(page.get_by_role("button", name=f"All {STEPS + 1} steps")).to_be_visible()
    expect(boxes.first).to_contain_text("s0")
    boxes.first.click()
    expect(page.get_by_label("Details", exact=True).first).to_contain_text("s0")
    page.get_by_role("button", name=f"All {STEPS + 1} steps").click()
    expect(boxes).to_have_count(13)


def test_the_filters_of_executions_are_one_line(at: Node, page: Page) -> None:
    page.goto(f"{at.url}/ui/executions")
    chip = page.get_by_role("button", name="All", exact=True).bounding_box()
    more = page.get_by_role("button", name="More filters").bounding_box()
    assert chip is not None
    assert more is not None
    assert more["y"] < chip["y"] + chip["height"], "it stands beside the others"
