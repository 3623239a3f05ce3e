"""What must not stand in any file: loose ends, skipped tests, and the place it was written at."""

import ast
import re

import pytest
from tests.house.tree import ROOT, lines_with, modules, name_of, texts, tree_of

# Some letters stand in brackets, so that a pattern does not find itself.
LOOSE_ENDS = re.compile(r"\bTO[D]O\b|\bFI[X]ME\b|\bXX[X]\b|NotImplemented[E]rror")
LEFT_OUT = re.compile(r"pytest\.(skip|xfail|importorskip)|mark\.(skip|skipif|xfail)|unittest\.skip")
SLEEPS = {"time.sleep", "asyncio.sleep", "sleep"}
INDEX_HOSTS = re.compile(
    r"py[p]i\.org|python[h]osted\.|registry\.np[m]js|artifac[t]ory|nexu[s]\.|conda\.anac[o]nda"
)
MACHINE_PATHS = re.compile(r"(?<![\w.$])/(wor[k]|roo[t]|hom[e]/\w+|User[s]/\w+)/")
WORKPLACE = re.compile(
    r"\.\./share[d]\b|\bseed[s]/|\bcoding agen[t]|\bsub-?agen[t]|\bCla[u]de\b|\bCo[p]ilot\b"
    r"|\bChatG[P]T\b|\blanguage mode[l]\b|\bissue (\d|[#])|\bprom[p]t engineer",
    re.IGNORECASE,
)


def test_no_loose_ends() -> None:
    assert lines_with(LOOSE_ENDS, texts()) == []


def test_no_test_is_left_out() -> None:
    assert lines_with(LEFT_OUT, modules()) == []


def sleeps_in(tree: ast.Module) -> list[int]:
    """The lines that wait for time. `sleep(0)` waits for nothing; code in texts is another's."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [
        call.lineno
        for call in calls
        if ast.unparse(call.func) in SLEEPS and [ast.unparse(arg) for arg in call.args] != ["0"]
    ]


def test_no_test_waits_for_time() -> None:
    tests = [path for path in modules() if path.is_relative_to(ROOT / "tests")]
    found = {name_of(path): sleeps_in(tree_of(path)) for path in tests}
    assert {name: lines for name, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("import time\ntime.sleep(1)", [2]),
        ("async def f():\n    await asyncio.sleep(0.1)", [2]),
        ("async def f():\n    await asyncio.sleep(0)", []),
        ("run('time.sleep(600)')", []),
    ],
)
def test_only_true_waits_count(text: str, lines: list[int]) -> None:
    assert sleeps_in(ast.parse(text)) == lines


def test_no_package_index_is_named() -> None:
    assert lines_with(INDEX_HOSTS, texts()) == []


def test_no_path_of_one_machine() -> None:
    assert lines_with(MACHINE_PATHS, texts()) == []


def test_the_project_speaks_of_itself_alone() -> None:
    assert lines_with(WORKPLACE, texts()) == []


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (LOOSE_ENDS, "# TO" + "DO: later"),
        (LEFT_OUT, "@pytest.mark." + "xfail"),
        (INDEX_HOSTS, "https://py" + "pi.org/simple"),
        (MACHINE_PATHS, "see /wor" + "k/main/x"),
        (MACHINE_PATHS, "/home" + "/anna/x"),
        (WORKPLACE, "as issu" + "e 12 says"),
    ],
)
def test_the_patterns_find_what_they_are_for(pattern: re.Pattern[str], text: str) -> None:
    assert pattern.search(text)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (MACHINE_PATHS, "https://example.com/work/x"),
        (MACHINE_PATHS, "$NOETL_HOME/home/"),
        (WORKPLACE, "validation reports the issues"),
    ],
)
def test_the_patterns_leave_the_rest_alone(pattern: re.Pattern[str], text: str) -> None:
    assert not pattern.search(text)


# ── words that only this project would know ──────────────────────────────────────────────────

PRIVATE = re.compile(
    r"\b(leg|legs|bell|bells|desk|desks|custody|shelf|shelves|furniture|front desk)\b",
    re.IGNORECASE,
)
KEPT = re.compile(r'name="(next_)?legs?"|`leg`')
"""The log of earlier releases calls a part `leg`."""
AS_THEY_WERE = ("docs/decisions/", "CHANGELOG.md", "tests/")
"""Records of what was said at the time, and tests."""


def test_the_field_s_words_are_used() -> None:
    found = [
        place
        for place in lines_with(PRIVATE, texts())
        if not place.startswith(AS_THEY_WERE) and not KEPT.search(place)
    ]
    assert found == [], "see GLOSSARY.md for the words to use"
