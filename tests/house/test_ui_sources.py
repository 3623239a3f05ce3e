"""The sources of the web UI keep the house rules too, and load nothing from elsewhere."""

import json
import re

import pytest
from tests.house.tree import ROOT, lines_with, name_of, texts
from tests.house.ui_types import PAGE

UI = ROOT / "ui"
SOURCES = [
    path
    for path in texts()
    if path.is_relative_to(UI / "src") and path.suffix in (".ts", ".svelte", ".css")
]
WRITTEN = ROOT / PAGE
MAX_FILE, MOST_FILES = 350, 250
RAW = re.compile(r"\{@html|innerHTML|outerHTML|insertAdjacentHTML|\beval\(|new Function")
"""Ways in which a text from outside could become part of a page."""
ELSEWHERE = re.compile(r"https?://|//cdn")
STATIC_STYLE = re.compile(r"""\sstyle=["'](?!\{)""")
"""The content security policy forbids it; `style:` goes another way."""


def test_there_are_sources() -> None:
    assert len(SOURCES) > 20


def test_files_are_short() -> None:
    lengths = {
        name_of(path): len(path.read_text("utf-8").splitlines())
        for path in SOURCES
        if path != WRITTEN
    }
    assert {name: lines for name, lines in lengths.items() if lines > MAX_FILE} == {}
    assert sorted(lengths.values())[len(lengths) * 9 // 10] <= MOST_FILES


@pytest.mark.parametrize("pattern", [RAW, ELSEWHERE, STATIC_STYLE], ids=lambda one: one.pattern)
def test_nothing_from_outside_becomes_a_page(pattern: re.Pattern[str]) -> None:
    assert lines_with(pattern, SOURCES) == []


def test_modules_start_with_what_they_answer() -> None:
    modules = [path for path in SOURCES if path.suffix == ".ts" and path.name != "main.ts"]
    silent = [name_of(path) for path in modules if not path.read_text("utf-8").startswith("//")]
    assert silent == [], "start the module with one sentence that says what it answers"


def test_packages_are_pinned_and_name_no_registry() -> None:
    wanted = json.loads((UI / "package.json").read_text("utf-8"))["devDependencies"]
    assert [name for name, version in wanted.items() if not version[0].isdecimal()] == []
    lock = json.loads((UI / "package-lock.json").read_text("utf-8"))["packages"]
    assert [name for name, package in lock.items() if "resolved" in package] == []
    assert [name for name, package in lock.items() if name and "integrity" not in package] == []


COLOUR = re.compile(r"--([a-z-]+): light-dark\(#(\w{6}), #(\w{6})\)")
INKS = {"text", "soft", "faint", "accent", "good", "bad", "busy", "wait", "calm"}
GROUNDS = {"ground", "raised", "sunken", "hover"} | {f"{one}-ground" for one in INKS}
READABLE = 4.5
"""The contrast that WCAG 2 (1.4.3) asks of small text."""


def _light(colour: str) -> float:
    parts = [int(colour[n : n + 2], 16) / 255 for n in (0, 2, 4)]
    red, green, blue = (
        one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _contrast(one: str, other: str) -> float:
    dark, bright = sorted((_light(one), _light(other)))
    return (bright + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_every_ink_can_be_read_on_every_ground(scheme: int) -> None:
    """A line that is chosen or pointed at keeps its inks: no page decides which pairs there are."""
    found = COLOUR.findall((UI / "src/app.css").read_text("utf-8"))
    colours = {name: pair[scheme] for name, *pair in found}
    inks, grounds = INKS & colours.keys(), GROUNDS & colours.keys()
    assert inks == INKS
    assert len(grounds) == 10
    pale = {
        f"{ink} on {ground}": round(contrast, 2)
        for ink in inks
        for ground in grounds
        if (contrast := _contrast(colours[ink], colours[ground])) < READABLE
    }
    assert pale == {}


ASKED = re.compile(r"\bfetch\(|XMLHttpRequest|EventSource|WebSocket|sendBeacon|[\"'`]/api/")
"""Ways in which a page could ask for something; `call` takes the names of routes alone."""
ASKING = {
    "ui/src/lib/api.ts": 1,
    "ui/src/lib/live.svelte.ts": 1,  # the stream, which is a route as well
}


def test_whatever_a_page_asks_for_is_a_route() -> None:
    """So the walk over routes and roles (tests/unit/api/test_gate.py) covers every action."""
    sources = [path for path in SOURCES if path != WRITTEN]
    found = {
        name_of(path): len(ASKED.findall(path.read_text("utf-8")))
        for path in sources
        if ASKED.search(path.read_text("utf-8"))
    }
    assert found == ASKING
    assert '"/api/executions/{execution_id}/stream"' in WRITTEN.read_text("utf-8")
