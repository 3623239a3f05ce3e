"""What a picture of a playbook shows."""

import pytest
from tests.unit.cli.graph.nets import (
    FAILED,
    HERE,
    admission,
    arc,
    join,
    loop,
    orders,
    playbook,
    rule,
    step,
    task,
)

from noetl.playbook.model import Guard, Inner, Step, Task
from noetl.server.views.drawing import Box, CardRow, Edge, Mark, bare, draw, failing


def only_box(drawn: Step) -> Box:
    return draw(playbook(drawn)).boxes[0]


def test_a_step_is_a_box_with_its_tasks() -> None:
    box = only_box(step("start", desc="why", tasks=(task("hello", "http"), task("bye", "noop"))))
    assert box == Box(
        name="start",
        desc="why",
        marks=(),
        rows=(CardRow("hello", "http"), CardRow("bye", "noop")),
        entry=True,
    )


@pytest.mark.parametrize(
    ("drawn", "marks"),
    [
        (step("a", join=join("b", "c")), [Mark("join", "all of b, c")]),
        (step("a", join=join("b", "c", mode=1)), [Mark("join", "1 of b, c")]),
        (step("a", loop=loop()), [Mark("loop", "sequential, page in workload.pages")]),
        (
            step("a", loop=loop([1, 2, 3], mode="parallel", max_in_flight=4)),
            [Mark("loop", "parallel, 4 in flight, page in 3 values")],
        ),
        (
            step("a", admission=admission(("{{ ctx.ok }}", True), (None, False))),
            [Mark("admit", "allow if ctx.ok; refuse otherwise")],
        ),
        (
            step("a", admission=admission((False, True), on_deny="drop")),
            [Mark("admit", "allow if never; refused: drop")],
        ),
        (
            step("a", arc("a"), arc("a"), mode="inclusive"),
            [Mark("fork", "every arc that matches")],
        ),
        (step("a", arc("a"), mode="inclusive"), []),
        (
            step("a", join=join("b"), admission=admission((True, True)), loop=loop([])),
            [
                Mark("join", "all of b"),
                Mark("admit", "allow if always"),
                Mark("loop", "sequential, page in 0 values"),
            ],
        ),
    ],
)
def test_marks_say_how_a_step_behaves(drawn: Step, marks: list[Mark]) -> None:
    assert list(only_box(drawn).marks) == marks


def test_a_policy_shows_where_the_counter_may_go() -> None:
    fetch = task(
        "fetch",
        "http",
        rule("retry", attempts=5),
        rule("jump", to="fetch"),
        rule("jump", to="fetch"),
        rule("break"),
        rule("continue"),
    )
    assert only_box(step("a", tasks=(fetch,))).rows[0].note == "retry 5, jump fetch, break"


def test_the_tasks_of_an_inner_loop_are_set_in() -> None:
    inner = Inner(loop=loop(), tasks=(task("one"), task("two")))
    outer = Task(place=HERE, label="each", kind="iterator", inner=inner)
    assert [(row.label, row.depth) for row in only_box(step("a", tasks=(outer,))).rows] == [
        ("each", 0),
        ("one", 1),
        ("two", 1),
    ]


def test_a_long_pipeline_is_cut_and_counted() -> None:
    box = only_box(step("a", tasks=tuple(task(f"t{n}") for n in range(11))))
    assert (len(box.rows), box.hidden) == (8, 3)


@pytest.mark.parametrize(
    ("names", "entry_step", "entry"),
    [
        (["a", "start"], None, "start"),
        (["a", "b"], None, "a"),
        (["a", "b"], "b", "b"),
    ],
)
@pytest.mark.rule("DOC-5")
def test_the_entry_is_marked(names: list[str], entry_step: str | None, entry: str) -> None:
    drawing = draw(playbook(*map(step, names), entry_step=entry_step))
    assert [box.name for box in drawing.boxes if box.entry] == [entry]


def test_the_final_step_is_marked() -> None:
    drawing = draw(orders())
    assert [box.name for box in drawing.boxes if box.final] == ["tidy"]


@pytest.mark.parametrize(
    ("arcs", "mode", "labels"),
    [
        ([arc("a")], "exclusive", [""]),
        ([arc("a", "{{ ctx.x }}")], "exclusive", ["ctx.x"]),
        ([arc("a", "{{ ctx.x }}"), arc("a")], "exclusive", ["1: ctx.x", "2: otherwise"]),
        ([arc("a"), arc("a", FAILED)], "exclusive", ["1: on success", f"2: {FAILED[3:-3]}"]),
        ([arc("a", True), arc("a", False)], "inclusive", ["always", "never"]),
        ([arc("a", "{{ ctx.x }}"), arc("a")], "inclusive", ["ctx.x", ""]),
    ],
)
def test_links_are_labelled_with_their_guards(arcs: list, mode: str, labels: list[str]) -> None:  # type: ignore[type-arg]
    drawing = draw(playbook(step("a", *arcs, mode=mode)))
    assert [link.label for link in drawing.links] == labels


def test_links_follow_the_document() -> None:
    drawing = draw(playbook(step("a", arc("c"), arc("b", FAILED)), step("b", arc("a")), step("c")))
    assert drawing.links == (
        Edge(0, 2, "1: on success"),
        Edge(0, 1, "2: event.name == 'step.failed'", failure=True),
        Edge(1, 0, ""),
    )


@pytest.mark.parametrize(
    ("guard", "fails"),
    [
        (FAILED, True),
        ("{{ event.name in ['step.failed'] }}", True),
        ("{{ event.name == 'StepFailed' }}", True),
        ("{{ event.error.kind == 'http' }}", True),
        ("{{ event.name != 'step.failed' }}", False),
        ("{{ event.name not in ['step.failed'] }}", False),
        ("{{ ctx.error }}", False),
        (True, False),
        (None, False),
    ],
)
def test_failure_arcs_are_known_by_their_guard(guard: Guard | None, fails: bool) -> None:
    assert failing(guard) is fails


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("{{ ctx.a }}", "ctx.a"),
        ("  {{ a\n  and b }}\n", "a and b"),
        ("{{ a }}{{ b }}", "{{ a }}{{ b }}"),
        ("plain", "plain"),
        (True, "always"),
    ],
)
def test_a_guard_loses_its_braces(value: object, text: str) -> None:
    assert bare(value) == text
