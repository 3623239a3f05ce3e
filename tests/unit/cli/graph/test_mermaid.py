"""The Mermaid text of a drawing."""

import re

import pytest
from tests.unit.cli.graph.nets import (
    FAILED,
    admission,
    arc,
    large,
    loop,
    orders,
    playbook,
    step,
    task,
)

from noetl.cli.graph.mermaid import escape, mermaid
from noetl.server.views.drawing import draw


def lines_of(*steps: object, **more: object) -> list[str]:
    return mermaid(draw(playbook(*steps, **more))).splitlines()  # type: ignore[arg-type]


def test_a_small_net_as_a_whole() -> None:
    lines = lines_of(
        step("start", arc("work", "{{ ctx.n > 1 }}"), arc("end", FAILED)),
        step("work", loop=loop(), tasks=(task("fetch", "http"),)),
        step("end", admission=admission(("{{ ctx.ok }}", True)), tasks=(task("rest"),)),
        final_step="end",
    )
    assert lines[:9] == [
        "flowchart TD",
        '  s0(["<b>start</b> (entry)"]):::entry',
        '  s1[["<b>work</b><br/><i>loop: sequential, page in workload.pages</i>'
        '<br/>fetch: http"]]:::step',
        '  s2["<b>end</b> (final)<br/>rest: noop"]:::final',
        '  g2{"admit<br/>allow if ctx.ok"}:::gate',
        '  s0 -->|"1: ctx.n #62; 1"| s1',
        "  s0 -.->|\"2: event.name == 'step.failed'\"| g2",
        "  g2 --> s2",
        "  linkStyle 1 stroke:#dc2626,color:#dc2626",
    ]
    assert [line.split()[0] for line in lines[9:]] == ["classDef"] * 4


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ('say "hi"', "say #34;hi#34;"),
        ("a<b>&c", "a#60;b#62;#38;c"),
        ("50%; #1", "50#37;#59; #35;1"),
        ("`code` {x} |y|", "#96;code#96; #123;x#125; #124;y#124;"),
        ("two\nlines", "two#10;lines"),
        ("日本 é", "日本 é"),
        ("\u202e\u200b", "#8238;#8203;"),
        ("a_b-c.d, e: f == [1]", "a_b-c.d, e: f == [1]"),
    ],
)
def test_everything_that_could_be_syntax_is_escaped(text: str, escaped: str) -> None:
    assert escape(text) == escaped


def test_a_hostile_name_stays_inside_its_quotes() -> None:
    evil = 'x"] --> y["<script>'
    lines = lines_of(step(evil, arc(evil, "{{ '\"]; click s0' }}"), tasks=(task(evil, evil),)))
    assert len(lines) == 7
    box, link = lines[1], lines[2]
    assert box.count('"') == 2
    assert "<script" not in box
    assert link.count('"') == 2
    assert ";" not in re.sub(r"#\d+;", "", link)


def test_reserved_words_of_mermaid_are_no_ids() -> None:
    lines = lines_of(step("end", arc("subgraph")), step("subgraph"))
    assert lines[3] == "  s0 --> s1"


def test_long_texts_are_cut() -> None:
    lines = lines_of(step("n" * 500, arc("n" * 500, "{{ " + "x" * 500 + " }}")))
    assert max(map(len, lines)) < 120


@pytest.mark.parametrize("net", [orders(), large()])
def test_every_link_joins_boxes_that_exist(net: object) -> None:
    text = mermaid(draw(net))  # type: ignore[arg-type]
    known = set(re.findall(r"^  ([sg]\d+)[\[{(]", text, re.MULTILINE))
    ends = re.findall(r"^  ([sg]\d+) -\.?->?.*? ([sg]\d+)$", text, re.MULTILINE)
    gates = sum(name.startswith("g") for name in known)
    assert len(ends) == len(draw(net).links) + gates  # type: ignore[arg-type]
    assert {end for pair in ends for end in pair} <= known
