"""Layers, order and places: what makes a picture readable, stated as facts."""

import math

import pytest
from tests.unit.cli.graph.nets import FAILED, arc, large, orders, playbook, step

from noetl.cli.graph import slots as slots_module
from noetl.cli.graph.layout import Layout, lay_out
from noetl.cli.graph.order import crossings, neighbours, ordered
from noetl.cli.graph.place import spread_out
from noetl.cli.graph.slots import Ends, backward, layered, ranks
from noetl.playbook.model import Playbook
from noetl.server.views.drawing import draw

CHAIN = [(0, 1), (1, 2), (2, 3)]
SIZE = (100.0, 40.0)


@pytest.mark.parametrize(
    ("count", "pairs", "first", "back"),
    [
        (4, CHAIN, 0, set()),
        (4, [*CHAIN, (3, 0)], 0, {3}),
        (4, [*CHAIN, (3, 0)], 2, {1}),
        (2, [(0, 1), (1, 0)], 0, {1}),
        (3, [(0, 1), (0, 2), (1, 2), (2, 1)], 0, {3}),
        (3, [(1, 2), (2, 1)], 0, {1}),
        (1, [], 0, set()),
    ],
)
def test_cycles_are_opened_where_they_close(
    count: int, pairs: list[tuple[int, int]], first: int, back: set[int]
) -> None:
    assert backward(count, pairs, first) == back


def test_a_very_long_chain_needs_no_recursion() -> None:
    pairs = [(n, n + 1) for n in range(20_000)]
    assert backward(20_001, pairs, 0) == frozenset()
    assert ranks(20_001, pairs, 0)[-1] == 20_000


@pytest.mark.parametrize(
    ("count", "pairs", "expected"),
    [
        (4, CHAIN, [0, 1, 2, 3]),
        (4, [(0, 1), (0, 3), (1, 2), (2, 3)], [0, 1, 2, 3]),
        (3, [(0, 1)], [0, 1, 0]),
        (4, [(0, 1), (1, 2), (3, 2)], [0, 1, 2, 1]),  # what nothing leads to stands near
    ],
)
def test_ranks_are_the_longest_way(
    count: int, pairs: list[tuple[int, int]], expected: list[int]
) -> None:
    assert ranks(count, pairs, 0) == expected


def ends(*pairs: tuple[int, int], failure: bool = False) -> list[Ends]:
    return [Ends(source, target, failure, (30.0, 14.0)) for source, target in pairs]


def test_lines_only_join_neighbouring_layers() -> None:
    page = layered([SIZE] * 4, ends(*CHAIN, (0, 3), (3, 0), (2, 2)), entry=0, final=None)
    assert {page.slots[b].layer - page.slots[a].layer for a, b in page.lines} == {1}
    assert page.own == [5]
    assert [path.upward for path in page.paths] == [False, False, False, False, True]


def test_links_to_one_step_share_their_bends() -> None:
    links = ends(*CHAIN) + ends((0, 4), (1, 4), (2, 4), (3, 4), failure=True)
    page = layered([SIZE] * 5, links, entry=0, final=None)
    bends = [slot for slot in page.slots if slot.sort == "bend"]
    assert sorted(slot.layer for slot in bends) == [2, 3, 4, 5, 6, 7]
    by_link = {path.link: path.slots for path in page.paths}
    assert by_link[6][-1] == 4  # the shortest arrives
    assert page.slots[by_link[3][-1]].sort == "bend"  # the others join it


def test_too_many_bends_become_stubs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slots_module, "MOST_BENDS", 1)
    page = layered([SIZE] * 4, ends(*CHAIN, (0, 3)), entry=0, final=None)
    assert [path.stub for path in page.paths] == [False, False, False, True]


def test_the_final_step_stands_below_everything() -> None:
    page = layered([SIZE] * 3, ends((0, 1)), entry=0, final=2)
    assert [slot.layer for slot in page.slots[:3]] == [0, 2, 4]


def test_crossings_are_counted_and_removed() -> None:
    layers = [[0, 1], [2, 3]]
    lines = [(0, 3), (1, 2)]
    _, below = neighbours(lines)
    assert crossings(layers, below) == 1
    assert crossings(ordered(layers, lines), below) == 0


@pytest.mark.parametrize(
    ("wanted", "apart", "pull", "placed"),
    [
        ([], [], [], []),
        ([5.0], [], [1.0], [5.0]),
        ([0.0, 100.0], [10.0], [1.0, 1.0], [0.0, 100.0]),
        ([0.0, 0.0], [10.0], [1.0, 1.0], [-5.0, 5.0]),
        ([0.0, 0.0], [10.0], [9.0, 1.0], [-1.0, 9.0]),
        ([50.0, 0.0, 50.0], [10.0, 10.0], [1.0, 1.0, 1.0], [20.0, 30.0, 50.0]),
    ],
)
def test_slots_stand_apart_and_near_their_wish(
    wanted: list[float], apart: list[float], pull: list[float], placed: list[float]
) -> None:
    assert spread_out(wanted, apart, pull) == pytest.approx(placed)


def wide_fan() -> Playbook:
    names = [f"branch_{n}" for n in range(30)]
    return playbook(step("start", *map(arc, names), mode="inclusive"), *map(step, names))


def everything_to_everything() -> Playbook:
    names = [f"s{n}" for n in range(9)]
    return playbook(*(step(name, *(arc(other, FAILED) for other in names)) for name in names))


NETS = {
    "one": playbook(step("start")),
    "loose": playbook(step("a"), step("b"), step("c", arc("a"))),
    "orders": orders(),
    "large": large(),
    "fan": wide_fan(),
    "dense": everything_to_everything(),
}


@pytest.fixture(params=NETS, scope="module")
def layout(request: pytest.FixtureRequest) -> Layout:
    return lay_out(draw(NETS[request.param]))


def test_cards_never_overlap(layout: Layout) -> None:
    cards = sorted(layout.cards, key=lambda placed: (placed.y, placed.x))
    for number, one in enumerate(cards):
        for other in cards[number + 1 :]:
            beside = one.x + one.card.width <= other.x or other.x + other.card.width <= one.x
            below = one.y + one.card.height <= other.y or other.y + other.card.height <= one.y
            assert beside or below


def test_everything_is_on_the_page(layout: Layout) -> None:
    for placed in layout.cards:
        assert placed.x >= -0.01
        assert placed.y >= 0
        assert placed.x + placed.card.width <= layout.width + 0.01
        assert placed.y + placed.card.height <= layout.height + 0.01
    for route in layout.routes:
        for x, y in route.points:
            assert math.isfinite(x)
            assert -0.01 <= x <= layout.width + 0.01
            assert -0.01 <= y <= layout.height + 0.01


def test_lines_begin_and_end_at_the_edges_of_their_cards(layout: Layout) -> None:
    for route in layout.routes:
        if route.own:
            continue
        source = layout.cards[route.link.source]
        x, y = route.points[0]
        assert source.x <= x <= source.x + source.card.width
        assert y in (pytest.approx(source.y), pytest.approx(source.y + source.card.height))
        if route.arrow:
            target = layout.cards[route.link.target]
            x, y = route.points[-1]
            assert target.x <= x <= target.x + target.card.width
            assert y in (pytest.approx(target.y), pytest.approx(target.y + target.card.height))


def test_every_step_that_is_led_to_has_an_arrow(layout: Layout) -> None:
    led_to = {route.link.target for route in layout.routes}
    assert {route.link.target for route in layout.routes if route.arrow} == led_to


def test_a_long_chain_does_not_drift_across_the_page() -> None:
    assert lay_out(draw(large())).width < 12 * 160
