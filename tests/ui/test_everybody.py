"""Nobody is kept out: every page, light and dark, narrow and wide, without serious findings."""

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from tests.system.servers import Node
from tests.ui.pages import PAGES, Seen, busy

AXE = Path(__file__).parents[2] / "ui/node_modules/axe-core/axe.min.js"
SERIOUS = ("serious", "critical")
ASKED = """async () => (await axe.run(document, {resultTypes: ["violations"]})).violations"""
GO = """(address) => {
  history.pushState({}, "", address);
  dispatchEvent(new PopStateEvent("popstate"));
}"""
"""As by a link: loading each page costs more than axe, and other stories load most."""
NOWHERE = "There is no page at this address"


@pytest.fixture(scope="module")
def at(alone: Node) -> Node:
    """These stories count what is there."""
    return alone


@pytest.fixture(scope="module")
def seen(at: Node) -> Seen:
    return busy(at, iterations=12)


@pytest.mark.parametrize(("scheme", "width"), [("light", 1440), ("dark", 390)])
def test_every_page_can_be_used_by_everybody(
    at: Node, page: Page, seen: Seen, scheme: str, width: int
) -> None:
    page.set_viewport_size({"width": width, "height": 844})
    page.emulate_media(
        color_scheme="dark" if scheme == "dark" else "light", reduced_motion="reduce"
    )
    wrong: dict[str, Any] = {}
    page.goto(f"{at.url}/ui/nowhere")
    page.evaluate(AXE.read_text("utf-8") + "\nundefined")
    for name, (address, ready) in PAGES.items():
        page.evaluate(GO, "/ui/nowhere")  # or what is ready might be of the page before
        expect(page.get_by_text(NOWHERE)).to_be_visible()
        page.evaluate(GO, f"/ui/{address.format(**seen)}")
        expect(page.locator(ready).first).to_be_visible()
        expect(page.get_by_text(NOWHERE)).to_have_count(0)
        wide = page.evaluate("document.documentElement.scrollWidth")
        if wide > width:
            wrong[f"{name}: too wide"] = wide
        for one in page.evaluate(ASKED):
            if one["impact"] in SERIOUS:
                nodes = [node["html"][:200] for node in one["nodes"][:3]]
                wrong[f"{name}: {one['id']}"] = (one["help"], nodes)
    assert wrong == {}
