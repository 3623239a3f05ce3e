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


@pytest.fixture(scope="module")
def seen(at: Node) -> Seen:
    return busy(at, iterations=40)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_can_be_used_by_everybody(at: Node, page: Page, seen: Seen, scheme: str) -> None:
    page.emulate_media(
        color_scheme="dark" if scheme == "dark" else "light", reduced_motion="reduce"
    )
    wrong: dict[str, Any] = {}
    for name, (address, ready) in PAGES.items():
        page.goto(f"{at.url}/ui/{address.format(**seen)}")
        expect(page.locator(ready).first).to_be_visible()
        page.evaluate(AXE.read_text("utf-8") + "\nundefined")
        for one in page.evaluate(ASKED):
            if one["impact"] in SERIOUS:
                nodes = [node["html"][:200] for node in one["nodes"][:3]]
                wrong[f"{name}: {one['id']}"] = (one["help"], nodes)
    assert wrong == {}


def test_nothing_is_wider_than_a_telephone(at: Node, page: Page, seen: Seen) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    wide = {}
    for name, (address, ready) in PAGES.items():
        page.goto(f"{at.url}/ui/{address.format(**seen)}")
        expect(page.locator(ready).first).to_be_visible()
        width = page.evaluate("document.documentElement.scrollWidth")
        if width > 390:
            wide[name] = width
    assert wide == {}
