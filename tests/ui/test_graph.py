"""Somebody reads a graph: nothing that is written on it lies on something else."""

import pytest
from playwright.sync_api import Page, expect
from tests.system.servers import Node
from tests.ui.stories import NIGHT

RECTANGLES = """(all) => all.map((one) => {
  const { left, top, right, bottom } = one.getBoundingClientRect();
  return [one.textContent.trim(), left, top, right, bottom];
})"""
Rectangle = tuple[str, float, float, float, float]


@pytest.mark.parametrize("width", [1440, 390])
def test_no_label_lies_on_another_or_on_a_step(at: Node, page: Page, width: int) -> None:
    assert at.there("register", "-", stdin=NIGHT.lstrip().encode()).code == 0
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(f"{at.url}/ui/playbooks/shop/orders")
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


def test_the_filters_of_executions_are_one_line(at: Node, page: Page) -> None:
    page.goto(f"{at.url}/ui/executions")
    chip = page.get_by_role("button", name="All", exact=True).bounding_box()
    more = page.get_by_role("button", name="More filters").bounding_box()
    assert chip is not None
    assert more is not None
    assert more["y"] < chip["y"] + chip["height"], "it stands beside the others"
