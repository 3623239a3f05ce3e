"""
`make screenshots`: every page, light and dark, wide and narrow, with a busy server behind it.

All go into `dist/screenshots`, to be looked at; those that documents show go to `docs/pictures`.
"""

import re
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
ASKED = {
    "run": ("playbooks/shop/orders", "Run"),
    "signal": ("executions/{waiting}", "Signal"),
    "cancel": ("executions/{waiting}", "Cancel"),
    "backfill": ("triggers", "Backfill"),
    "palette": ("executions", "Go to"),
    "token": ("tokens", "Make a token"),
    "credential": ("credentials", "Add"),
    "limit": ("runtime", "Set limit"),
}
"""Dialogs: the address below each, and the button that opens it."""
PAUSE, LOOKS = 250, 12
"""Milliseconds between two looks at a page that still moves, and how many there are at the most."""
PLACES = """() => {
  const places = (root) => [...root.querySelectorAll("*")].flatMap((one) => {
    const { x, y, width, height } = one.getBoundingClientRect();
    return [x, y, width, height, ...(one.shadowRoot ? places(one.shadowRoot) : [])].map(Math.round);
  });
  return places(document).join();
}"""
"""Where everything is, in the editors too, which measure their lines after they are drawn."""


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
        with node(Path(home) / "guarded", "--auth", workers=0) as guarded:
            for scheme in SCHEMES:
                for width in WIDTHS:
                    sign_in(browser, guarded.url, scheme, width, folder, names)
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
    page = window(browser, scheme, width)
    for name, (address, ready) in PAGES.items():
        if name in (names or PAGES):
            page.goto(f"{url}/ui/{address.format(**seen)}")
            expect(page.locator(ready).first).to_be_visible()
            settled(page)
            picture(page, folder / f"{name}-{scheme}-{width}.png")
    for name, (address, button) in ASKED.items():
        if name in (names or ASKED):
            page.goto(f"{url}/ui/{address.format(**seen)}")
            opens = page.get_by_role("button", name=re.compile(f"^{button}")).first
            expect(opens).to_be_visible()
            settled(page)
            opens.click()
            expect(page.get_by_role("dialog")).to_be_visible()
            picture(page, folder / f"{name}-{scheme}-{width}.png")
    page.context.close()


def sign_in(
    browser: Browser,
    url: str,
    scheme: Literal["light", "dark"],
    width: int,
    folder: Path,
    names: list[str],
) -> None:
    if "sign-in" not in (names or ["sign-in"]):
        return
    page = window(browser, scheme, width)
    page.goto(f"{url}/ui/executions")
    expect(page.get_by_role("button", name="Sign in")).to_be_visible()
    picture(page, folder / f"sign-in-{scheme}-{width}.png")
    page.context.close()


def window(browser: Browser, scheme: Literal["light", "dark"], width: int) -> Page:
    context = browser.new_context(
        viewport={"width": width, "height": WIDTHS[width]},
        color_scheme=scheme,
        reduced_motion="reduce",
        locale="en-GB",
    )
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    expect.set_options(timeout=PATIENCE)
    return page


def picture(page: Page, path: Path) -> None:
    """All of the page; of one with a dialog what is in view, since the rest is not covered."""
    page.evaluate("scrollTo(0, 0)")
    page.screenshot(path=path, full_page=page.get_by_role("dialog").count() == 0)
    print(path.stem, flush=True)


def settled(page: Page) -> None:
    """Nothing on it says any more that it is on its way."""
    for words in ("Loading…", "Loading the editor…", "Drawing…", "Checking…"):
        expect(page.get_by_text(words, exact=True)).to_have_count(0)
    expect(page.locator("[title=Loading]")).to_have_count(0)
    expect(
        page.get_by_role("button", name=re.compile("^Search before"), disabled=True)
    ).to_have_count(0)
    for pause in (PAUSE,) * LOOKS:
        before = page.evaluate(PLACES)
        page.wait_for_timeout(pause)
        if page.evaluate(PLACES) == before:
            return


if __name__ == "__main__":
    main(sys.argv[1:])
