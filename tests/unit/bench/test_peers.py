"""The bench of peers: our own side at a tenth, one floor, the table and the chart."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path
from xml.etree import ElementTree

from bench import size
from bench.peers import chart, report
from bench.peers.environments import ROOT
from bench.peers.registry import OURS, PINS, WORKS, Result, peers, reason_without

SVG = "{http://www.w3.org/2000/svg}"


def result(peer: str, work: str, value: float | None, *, reason: str = "") -> Result:
    known = peers()[peer]
    return Result(
        peer=peer,
        title=known.title,
        work=work,
        unit=WORKS[work].unit,
        durable=known.durable,
        isolated=known.isolated,
        value=value,
        reason=reason,
    )


FOUND = report.with_ratios(
    [
        result("noetl-noop", "W1", 0.1),
        result("noetl-python", "W1", 0.5),
        result("dbos", "W1", 4.0),
        result("spiff", "W1", 0.25),
        result("temporal", "W1", None, reason="its server does not start"),
        result("noetl-python", "W2", 3000.0),
        result("dbos", "W2", 200.0),
    ]
)


def test_our_side_runs_with_a_floor_and_without_a_peer(tmp_path: Path) -> None:
    words = ("--peers", ",".join(OURS), "--works", "W1,W4,W6", "--floors", "commit")
    drawn = tmp_path / "chart.svg"
    ended = subprocess.run(
        [sys.executable, "-m", "bench.peers", *words, "--chart", str(drawn)],
        cwd=ROOT,
        env={**os.environ, size.VARIABLE: "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    said = {tuple(line.split()[:3]) for line in ended.stdout.splitlines()}
    assert {
        ("NoETL,", kind, work) for kind in ("noop", "python") for work in ("W1", "W4", "W6")
    } <= said
    assert "| one commit on SQLite |" in ended.stdout
    assert ElementTree.parse(drawn).getroot().tag == f"{SVG}svg"


def test_a_ratio_above_one_means_that_ours_is_ahead() -> None:
    ratios = {(one.peer, one.work): one.ratio for one in FOUND}
    assert ratios["dbos", "W1"] == 8.0
    assert ratios["spiff", "W1"] == 0.5, "a peer that wins is shown"
    assert ratios["dbos", "W2"] == 15.0
    assert ratios["temporal", "W1"] is None


def test_the_table_says_what_each_figure_is_worth_and_why_one_is_missing() -> None:
    table = report.table(FOUND)
    for peer in ("noetl-noop", "noetl-python", "dbos", "spiff"):
        known = peers()[peer]
        assert f"| {known.title} | {known.durable} | {known.isolated} |" in table
    assert "Temporal, file, W1: its server does not start" in table


def test_the_chart_has_a_bar_for_each_figure_and_colours_for_light_and_dark() -> None:
    text = chart.drawn(FOUND)
    root = ElementTree.fromstring(text)
    bars = [one for one in root.iter(f"{SVG}rect") if one.get("class") in ("ours", "peer")]
    assert len(bars) == sum(one.value is not None for one in FOUND)
    assert all(0 < float(one.get("width", "0")) <= chart.BAR for one in bars)
    assert "prefers-color-scheme: dark" in text
    assert "no figure: Temporal, file" in text


def test_a_page_keeps_all_but_the_table() -> None:
    for begin, end in (report.TABLE, report.CHART):
        page = f"# Page\n\n{begin}\n\nold\n\n{end}\n\nrest\n"
        written = report.in_page(page, FOUND)
        assert written.startswith("# Page\n\n")
        assert written.endswith(f"{end}\n\nrest\n")
        assert "peers.svg" in written
        assert "old" not in written
        assert report.in_page(written, FOUND) == written
    assert report.in_page("no marks", FOUND) == "no marks"


def test_the_pages_have_the_marks() -> None:
    for page, marks in (("docs/performance.md", report.TABLE), ("README.md", report.CHART)):
        text = (ROOT / page).read_text("utf-8")
        assert [text.count(mark) for mark in marks] == [1, 1], page


def test_a_figure_follows_from_what_was_done() -> None:
    assert WORKS["W2"].value(2.0, 500) == 250.0
    assert WORKS["W1"].value(2.0, 100) == 20.0
    assert WORKS["W9"].value(0.5, 1) == 500.0


def test_every_peer_is_pinned_and_has_a_program() -> None:
    rows = tomllib.loads(PINS.read_text("utf-8"))
    for name, peer in peers().items():
        pinned = all("==" in package for package in rows[name].get("packages", []))
        assert pinned, f"{name} is not pinned"
        assert (ROOT / f"{peer.module.replace('.', '/')}.py").exists()
        assert all(reason_without(peer, work) is None for work in ("W4", "W5"))
