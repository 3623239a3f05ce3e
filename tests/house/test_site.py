"""The site: every page is in its navigation, every link holds, nothing comes from elsewhere."""

import json
import re
from pathlib import Path

import pytest
from tests.house.site import FOLDER, build, nav
from tests.house.tree import ROOT, name_of, pages

LOADED = re.compile(
    r"<(?:script|link|img|iframe|source)\b[^>]*(?:src|href)=\"?((?:https?:)?//[^\" >]+)"
)


@pytest.fixture(scope="module")
def site() -> Path:
    done = build()
    assert done.returncode == 0, done.stdout + done.stderr
    return FOLDER / "site"


def test_the_navigation_has_every_page_once() -> None:
    listed = [page for section in nav().values() for page in section]
    assert sorted(map(name_of, [*listed, ROOT / "README.md"])) == sorted(map(name_of, pages()))


def test_every_page_is_built_and_leads_on(site: Path) -> None:
    built = {path.relative_to(site).as_posix() for path in site.rglob("index.html")}
    for page in pages():
        name = name_of(page).removesuffix(".md")
        own = name.removesuffix("README").rstrip("/") if name.endswith("README") else name
        assert f"{own}/index.html".lstrip("/") in built, name
    first = (site / "docs" / "learn" / "01-first-playbook" / "index.html").read_text("utf-8")
    assert re.search(r'<a href="?\.\./02-validation/"? class="md-footer__link', first)


def test_pages_load_nothing_from_elsewhere(site: Path) -> None:
    found = {
        address
        for page in site.rglob("*.html")
        for address in LOADED.findall(page.read_text("utf-8"))
    }
    assert found == set()


def test_the_search_knows_the_pages(site: Path) -> None:
    known = json.loads((site / "search.json").read_text("utf-8"))
    places = {item["location"].partition("#")[0] for item in known["items"]}
    assert len(places) >= len(pages()) - 1
