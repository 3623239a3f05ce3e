"""How large a box must be for what stands in it."""

import pytest

from noetl.cli.graph.card import NARROWEST, PAD, PILE, Card, card_of
from noetl.cli.graph.svg import DAY, NIGHT, style
from noetl.server.views.drawing import Box, CardRow, Mark


def card(name: str = "a", **more: object) -> Card:
    return card_of(Box(name=name, desc="", **{"marks": (), "rows": (), **more}))  # type: ignore[arg-type]


def test_a_small_box_has_the_least_width() -> None:
    assert card().width == NARROWEST + 2 * PAD


def test_every_line_adds_its_height() -> None:
    one, two = (card(rows=(CardRow("a", "http"),) * count) for count in (1, 2))
    three = card(rows=(CardRow("a", "http"),) * 2, hidden=3)
    assert two.height - one.height == three.height - two.height == 18.0
    assert three.more == "… 3 more"


def test_a_pile_takes_room_on_both_sides() -> None:
    join = card(marks=(Mark("join", "all of b"),))
    loop = card(marks=(Mark("loop", "all of b"),))
    assert (join.pile, loop.pile) == (0.0, PILE)
    assert loop.height == join.height + PILE


@pytest.mark.parametrize(
    "wider",
    [
        {"name": "a_name_of_some_length_here"},
        {"marks": (Mark("admit", "allow if ctx.something_long > 3"),)},
        {"rows": (CardRow("a_long_label_for_a_task", "postgres"),)},
        {"rows": (CardRow("label", "http", "retry 5, jump label"),), "name": "x"},
        {"rows": (CardRow("each_of_them", "postgres", depth=3),)},
    ],
)
def test_the_widest_line_decides(wider: dict[str, object]) -> None:
    assert card(**wider).width > card().width  # type: ignore[arg-type]


def test_what_is_too_long_is_cut() -> None:
    long = card("n" * 900, marks=(Mark("join", "m" * 900),), rows=(CardRow("l" * 900, "k" * 900),))
    assert long.width < 900
    assert all(text.endswith("…") for text in (long.title, long.marks[0].text, long.rows[0].label))


def test_ends_are_named() -> None:
    assert card(entry=True, final=True).ends == ("entry", "final")


def test_day_and_night_have_the_same_colours() -> None:
    assert DAY.keys() == NIGHT.keys()
    sheet = style()
    day, _, night = sheet.partition("@media (prefers-color-scheme: dark)")
    assert all(colour in day for colour in DAY.values())
    assert all(colour in night for colour in NIGHT.values())
    assert sheet.count("{") == sheet.count("}")
