"""The SVG of a drawing: well-formed whatever the playbook says, and saying all of it."""

from xml.etree import ElementTree

import pytest
from tests.unit.cli.graph.nets import FAILED, arc, large, loop, orders, playbook, step, task

from noetl.cli.graph.measure import measure, shorten, wrap
from noetl.cli.graph.svg import curve, svg, text
from noetl.cli.terminal import width_of
from noetl.playbook.model import Playbook
from noetl.server.views.drawing import draw

SPACE = "{http://www.w3.org/2000/svg}"


def parsed(net: Playbook) -> ElementTree.Element:
    return ElementTree.fromstring(svg(draw(net)))


def texts(root: ElementTree.Element) -> list[str]:
    return [element.text or "" for element in root.iter(f"{SPACE}text")]


def classed(root: ElementTree.Element, tag: str, *classes: str) -> int:
    return sum(
        set(classes) <= set((element.get("class") or "").split())
        for element in root.iter(f"{SPACE}{tag}")
    )


def test_the_picture_says_what_the_playbook_says() -> None:
    root = parsed(orders())
    shown = texts(root)
    for box in draw(orders()).boxes:
        assert box.name in shown
        for row in box.rows:
            assert row.label in shown
            assert row.kind in shown
    for word in ("entry", "final", "loop", "admit", "join", "fork", "ctx.again", "3: otherwise"):
        assert word in shown


def test_failures_are_dashed_and_red() -> None:
    root = parsed(orders())
    assert classed(root, "path", "link") == 18
    assert classed(root, "path", "link", "fail") == 5
    sheet = root.find(f"{SPACE}style")
    assert sheet is not None
    assert ".link.fail { stroke-dasharray: 6 4" in (sheet.text or "")
    assert ".link.fail { stroke: #dc2626 }" in (sheet.text or "")


def test_gate_and_pile_are_drawn() -> None:
    root = parsed(orders())
    assert classed(root, "path", "admit", "pad") == 1
    assert classed(root, "rect", "card") == 12 + 2  # the pile of the loop step


@pytest.mark.parametrize(
    "evil",
    ["<script>alert(1)</script>", "a & b", '"><x y="', "]]>", "\x00\x08\x1b", "\ufffe", "日本😀"],
)
def test_no_text_of_the_playbook_breaks_the_picture(evil: str) -> None:
    net = playbook(
        step(evil, arc(evil, f"{{{{ {evil} }}}}"), tasks=(task(evil, evil),), loop=loop(evil)),
        name=evil,
    )
    root = parsed(net)
    assert {element.tag.removeprefix(SPACE) for element in root.iter()} <= {
        *("svg", "title", "style", "defs", "marker", "path", "rect", "text", "g"),
    }


@pytest.mark.parametrize("net", [playbook(step("one")), orders(), large()])
def test_sizes_are_stated(net: Playbook) -> None:
    root = parsed(net)
    width, height = float(root.get("width", "0")), float(root.get("height", "0"))
    assert width > 100
    assert height > 80
    assert root.get("viewBox") == f"0 0 {root.get('width')} {root.get('height')}"


def test_the_same_playbook_gives_the_same_picture() -> None:
    assert svg(draw(orders())) == svg(draw(orders()))


def test_nothing_is_fetched_from_elsewhere() -> None:
    assert "http" not in svg(draw(playbook(step("a", arc("a", FAILED))))).replace(
        "http://www.w3.org/2000/svg", ""
    )


def test_curves_are_straight_where_they_can_be() -> None:
    assert curve(((0, 0), (0, 10), (5, 20)), own=False) == "M0 0 L0 10 C0 15 5 15 5 20"
    assert curve(((0, 0), (9, 0), (9, 5), (0, 5)), own=True) == "M0 0 C9 0 9 5 0 5"


def test_what_xml_cannot_hold_is_replaced() -> None:
    assert text("a\x00<\ud800\x9b\x7f") == "a\ufffd&lt;\ufffd\ufffd\ufffd"


@pytest.mark.parametrize(
    ("value", "most", "short"),
    [
        ("short", 5, "short"),
        ("longer", 5, "long…"),
        ("日本日本", 5, "日本…"),
        ("two words", 5, "two…"),
        ("", 5, ""),
    ],
)
def test_shortening_keeps_within_the_columns(value: str, most: int, short: str) -> None:
    assert shorten(value, most) == short
    assert width_of(short) <= most


@pytest.mark.parametrize(
    ("value", "lines"),
    [
        ("", ()),
        ("one", ("one",)),
        ("one two three", ("one two", "three")),
        ("one two three four five six", ("one two", "three …")),
        ("averylongword x", ("averylo…", "x")),
    ],
)
def test_wrapping_breaks_at_spaces(value: str, lines: tuple[str, ...]) -> None:
    assert wrap(value, 8, 2) == lines


def test_wider_text_measures_wider() -> None:
    assert measure("iii", 10) < measure("nnn", 10) < measure("mmm", 10)
    assert measure("abc", 10) < measure("abc", 10, bold=True)
    assert measure("abc", 10, mono=True) == measure("iii", 10, mono=True)
