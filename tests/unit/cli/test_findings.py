"""Findings as people read them."""

from noetl.cli.findings import MOST_SHOWN, render, summary
from noetl.cli.source import PlaybookSource
from noetl.cli.terminal import Paint
from noetl.playbook.finding import Finding

PLAIN = Paint(False)


def finding(**changes: object) -> Finding:
    fields: dict[str, object] = {
        "code": "unknown-step",
        "severity": "error",
        "line": 41,
        "column": 17,
        "path": "workflow[2].next.arcs[0].step",
        "message": "arc leads to step 'validate_result', which does not exist",
        "hint": "did you mean 'validate_results'?",
    }
    return Finding(**{**fields, **changes})  # type: ignore[arg-type]


def shown(source: str, found: Finding, paint: Paint = PLAIN) -> list[str]:
    return "\n".join(
        render(PlaybookSource("playbook.yaml", source.encode()), (found,), paint, 80)
    ).split("\n")


def test_a_finding_reads_like_that_of_a_compiler() -> None:
    source = "\n" * 40 + "        - step: validate_result\n"
    assert shown(source, finding()) == [
        "error[unknown-step]: arc leads to step 'validate_result', which does not exist",
        "  --> playbook.yaml:41:17  workflow[2].next.arcs[0].step",
        "   |",
        "41 |         - step: validate_result",
        "   |                 ^^^^^^^^^^^^^^^",
        "   = hint: did you mean 'validate_results'?",
        "",
    ]


def test_a_hint_of_several_lines_keeps_its_shape() -> None:
    found = finding(line=1, column=1, hint="write\nnext:\n  arcs: []")
    assert shown("next: []", found)[-4:] == [
        "  = hint: write",
        "          next:",
        "            arcs: []",
        "",
    ]


def test_a_line_beyond_the_text_is_left_out() -> None:
    assert shown("one line", finding(line=9, hint="", path="")) == [
        "error[unknown-step]: arc leads to step 'validate_result', which does not exist",
        " --> playbook.yaml:9:17",
        "",
    ]


def test_nothing_of_the_document_steers_the_terminal() -> None:
    evil = "\x1b]0;owned\x07"
    found = finding(line=1, column=1, message=evil, hint=evil, path=evil)
    text = "\n".join(render(PlaybookSource(f"{evil}.yaml", evil.encode()), (found,), PLAIN, 80))
    assert "\x1b" not in text
    assert "\x07" not in text
    assert text.count("\\x1b]0;owned\\x07") == 5


def test_lines_are_counted_as_yaml_counts_them() -> None:
    source = "a: 1\r\nb: 2\rc: 3\u2028d: 4"
    assert shown(source, finding(line=4, column=1))[3] == "4 | d: 4"


def test_text_that_is_no_utf_8_is_shown_all_the_same() -> None:
    text = "\n".join(
        render(PlaybookSource("x", b"\xff\xfe: 1"), (finding(line=1, column=1),), PLAIN, 80)
    )
    assert "1 | \ufffd\ufffd: 1" in text


def test_colour_marks_severity_and_gutter() -> None:
    lines = shown("a: 1", finding(line=1, column=1, severity="warning"), Paint(True))
    assert lines[0].startswith("\x1b[1;33mwarning[unknown-step]\x1b[0m: \x1b[1m")
    assert lines[4] == "  \x1b[1;34m|\x1b[0m \x1b[1;33m^\x1b[0m"


def test_the_summary_counts() -> None:
    error, warning = finding(), finding(severity="warning")
    assert summary("a.yaml", (), PLAIN) == "a.yaml: valid"
    assert summary("a.yaml", (warning,), PLAIN) == "a.yaml: valid, 1 warning"
    assert summary("a.yaml", (error, error), PLAIN) == "a.yaml: invalid, 2 errors"
    both = (error, warning, warning)
    assert summary("a.yaml", both, PLAIN) == "a.yaml: invalid, 1 error and 2 warnings"


def test_a_flood_of_findings_is_cut_short_for_people() -> None:
    flood = [finding(line=1 + n) for n in range(MOST_SHOWN + 1_500)]
    blocks = list(render(PlaybookSource("playbook.yaml", b"a: 1\n"), flood, PLAIN, 80))
    assert len(blocks) == MOST_SHOWN + 1
    assert blocks[-1] == "… and 1,500 more findings; --json prints them all\n"
    assert (
        len(list(render(PlaybookSource("playbook.yaml", b""), flood[:MOST_SHOWN], PLAIN, 80)))
        == 1_000
    )
