"""The figures as lines and as a table."""

from collections.abc import Iterable

import msgspec

from bench.peers.registry import OURS, WORKS, Result

PYTHON = OURS[1]
NOTHING, TIMES = "\N{EN DASH}", "\N{MULTIPLICATION SIGN}"
TABLE = ("<!-- peers -->", "<!-- end peers -->")
CHART = ("<!-- chart of peers -->", "<!-- end chart of peers -->")
BARS = "![Bars: NoETL and other engines on the same work, in one run]"
PICTURE = f"{BARS}(pictures/peers.svg)"
SHOWN = (
    f"{BARS}(docs/pictures/peers.svg)\n\n"
    "One run of `make bench-peers`: NoETL commits each step and runs each `python` task in an "
    "isolated child; the others keep what [their line](docs/performance.md#beside-other-engines) "
    "says, and where one of them is faster, the chart shows it."
)
LINE = "{:<22} {:<5} {:>12} {:<8} {}"


def told(found: list[Result], result: Result) -> list[Result]:
    """Say it at once, and put it in the place of an older figure of the same."""
    value = NOTHING if result.value is None else figure(result.value)
    print(
        LINE.format(
            result.title, result.work, value, result.unit, result.reason or result.note
        ).rstrip(),
        flush=True,
    )
    same = [n for n, one in enumerate(found) if key(one) == key(result)]
    if same:
        return [*found[: same[0]], result, *found[same[0] + 1 :]]
    return [*found, result]


def key(result: Result) -> tuple[str, str, str]:
    return (result.peer, result.work, result.title if result.peer == "floor" else "")


def with_ratios(found: list[Result]) -> list[Result]:
    """Each beside ours as `python`, so that above 1 ours is ahead."""
    ours = {one.work: one.value for one in found if one.peer == PYTHON}
    return [msgspec.structs.replace(one, ratio=ratio(one, ours.get(one.work))) for one in found]


def ratio(result: Result, ours: float | None) -> float | None:
    if result.value is None or ours is None or result.work not in WORKS:
        return None
    return result.value / ours if WORKS[result.work].at_most else ours / result.value


def figure(value: float) -> str:
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def table(found: list[Result]) -> str:
    """The tables of `docs/performance.md`."""
    works = [work for work in WORKS if any(one.work == work for one in found)]
    heads = ["", *(f"{work} {WORKS[work].unit}" for work in works)]
    rows = [heads, ["---", *("---:" for _ in works)]]
    for peer in dict.fromkeys(one.peer for one in found if one.peer != "floor"):
        own = {one.work: one for one in found if one.peer == peer}
        title = next(iter(own.values())).title
        rows.append([title, *(cell(own.get(work)) for work in works)])
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    lines += ["", *floors(found), "", *worth(found), "", *reasons(found)]
    return "\n".join(lines)


def in_page(page: str, found: list[Result]) -> str:
    """A page with these figures between its marks: the table, or the chart alone."""
    for (begin, end), says in ((TABLE, f"{PICTURE}\n\n{table(found)}"), (CHART, SHOWN)):
        before, mark, rest = page.partition(begin)
        if mark:
            _, closing, after = rest.partition(end)
            assert closing, f"the page has {begin} and no {end}"
            page = f"{before}{begin}\n\n{says}\n\n{end}{after}"
    return page


def cell(result: Result | None) -> str:
    if result is None or result.value is None:
        return NOTHING
    if result.ratio is None or result.peer == PYTHON:
        return figure(result.value)
    return f"{figure(result.value)} ({result.ratio:.2g} {TIMES})"


def floors(found: list[Result]) -> Iterable[str]:
    rows = [one for one in found if one.peer == "floor" and one.value is not None]
    if not rows:
        return []
    heads = ["| what the machine allows | figure | what is durable |", "|---|---:|---|"]
    return [
        *heads,
        *(
            f"| {one.title} | {figure(one.value or 0.0)} {one.unit} | {one.durable} |"
            for one in rows
        ),
    ]


def worth(found: list[Result]) -> Iterable[str]:
    """What each line promises: a figure without it says nothing."""
    rows = {one.title: one for one in found if one.peer != "floor"}
    heads = ["| | what is durable | what is isolated |", "|---|---|---|"]
    return [
        *heads,
        *(f"| {one.title} | {one.durable} | {one.isolated} |" for one in rows.values()),
    ]


def reasons(found: list[Result]) -> Iterable[str]:
    said = [one for one in found if one.reason or one.note]
    return [f"- {one.title}, {one.work}: {one.reason or one.note}" for one in said]
