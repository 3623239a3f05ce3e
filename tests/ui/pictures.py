"""
`make screenshots`: every page, light and dark, wide and narrow, with a busy server behind it.

All go into `dist/screenshots`, to be looked at; those that documents show go to `docs/pictures`.
"""

import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from playwright.sync_api import Browser, Page, expect, sync_playwright
from tests.system.servers import node
from tests.ui.conftest import ALONE, CHROMIUM, PATIENCE
from tests.ui.pages import PAGES, Seen, busy

ROOT = Path(__file__).parents[2]
WIDTHS = {1440: 900, 390: 844}
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
SHOWN = {
    "executions-light-1440": "ui-executions",
    "execution-light-1440": "ui-failure",
    "graph-dark-1440": "ui-graph",
    "runs-light-1440": "ui-runs",
}
"""Picture → its name in the documents."""
ITERATIONS = 400


def main(names: list[str]) -> None:
    folder = ROOT / "dist/screenshots"
    folder.mkdir(parents=True, exist_ok=True)
    with (
        TemporaryDirectory() as home,
        node(Path(home) / "home", "--open", workers=2) as at,
        sync_playwright() as playwright,
    ):
        seen = busy(at, iterations=ITERATIONS)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(ALONE))
        for scheme in SCHEMES:
            for width in WIDTHS:
                take(browser, at.url, seen, scheme, width, folder, names)
        browser.close()
    for taken, shown in SHOWN.items():
        if (folder / f"{taken}.png").exists():
            shutil.copy(folder / f"{taken}.png", ROOT / f"docs/pictures/{shown}.png")


def take(
    browser: Browser,
    url: str,
    seen: Seen,
    scheme: Literal["light", "dark"],
    width: int,
    folder: Path,
    names: list[str],
) -> None:
    context = browser.new_context(
        viewport={"width": width, "height": WIDTHS[width]},
        color_scheme=scheme,
        reduced_motion="reduce",
        locale="en-GB",
    )
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    expect.set_options(timeout=PATIENCE)
    for name in names or PAGES:
        address, ready = PAGES[name]
        page.goto(f"{url}/ui/{address.format(**seen)}")
        expect(page.locator(ready).first).to_be_visible()
        settled(page)
        page.evaluate("scrollTo(0, 0)")
        picture = f"{name}-{scheme}-{width}"
        page.screenshot(path=folder / f"{picture}.png", full_page=picture not in SHOWN)
        print(picture, flush=True)
    context.close()


def settled(page: Page) -> None:
    """Nothing on it says any more that it is on its way."""
    for words in ("Loading…", "Loading the editor…", "Drawing…", "Checking…"):
        expect(page.get_by_text(words, exact=True)).to_have_count(0)
    expect(page.locator("[title=Loading]")).to_have_count(0)


if __name__ == "__main__":
    main(sys.argv[1:])
