"""What must not stand in any file: loose ends, skipped tests, and the place it was written at."""

import ast
import re
from collections.abc import Iterator

import pytest
from tests.house.markdown import prose_of
from tests.house.tree import ROOT, SOURCE, lines_with, modules, name_of, pages, texts, tree_of

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
    # In the simulation no time passes but the simulated one (decision 0075).
    simulated = ROOT / "tests" / "simulation"
    tests = [
        path
        for path in modules()
        if path.is_relative_to(ROOT / "tests") and not path.is_relative_to(simulated)
    ]
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


# ── what a user reads is the field's plain English ───────────────────────────────────────────

PRIVATE = re.compile(
    r"\b(legs?|bells?|desks?|custody|shelf|shelves|furniture|mend(s|ed)?)\b", re.IGNORECASE
)
"""Words that only this project would know."""
KEPT = re.compile(r"name=\"(next_)?legs?\"|\"leg\": \"part\"|The key `leg`|'(\$\.)?leg'")
"""The log keeps the key that earlier releases wrote; readers see `part` (decision 0085)."""
OF_THE_LOG = ("docs/decisions/0034-", "docs/decisions/0085-", "tests/")
"""What speaks of that key, and tests."""

QUAINT = re.compile(
    r"\b(stands?(?!-| for\b)|stood|anew|lest|thus|whilst|upon|shall|nevertheless|hitherto"
    r"|hereby|herein|therein|thereof|thence|whence|nay|amongst|alas|forthwith|knobs?"
    r"|(?:for|in) vain|further ado|for want of|at hand|in good order|if need be|has a say"
    r"|asks? after|(?:can(?:not)?|may|could) be had|not to be (?:seen|had)|sign of life"
    r"|a word from|no such thing|and the like|next to nothing|came to the same"
    r"|speaks? to themselves|that (?:is|are) none|that cannot be(?= *(?:$|[|.,;:)]))"
    r"|(?<!there )(?:is|are) no (?!longer|more|one\b|such|\{)[\w'-]+"
    r"|li(?:e|es) (?:in|below|beside|under|there|where|elsewhere))\b",
    re.IGNORECASE,
)
"""Words of another century, and turns that are right in another language."""
TO_READ = ("README.md", "GLOSSARY.md", "docs/", "examples/")
NOT_PROSE = ("docs/decisions/", "docs/conformance.md")
"""Records, and a page made of the names of tests."""


def test_the_field_s_words_are_used() -> None:
    found = [
        place
        for place in lines_with(PRIVATE, texts())
        if not place.startswith(OF_THE_LOG) and not KEPT.search(place)
    ]
    assert found == [], "see GLOSSARY.md for the words to use"


def prose() -> Iterator[tuple[str, str]]:
    """What people read of the pages: no code, neither in blocks nor in lines."""
    for page in pages():
        name = name_of(page)
        if name.startswith(TO_READ) and not name.startswith(NOT_PROSE):
            for number, line in enumerate(prose_of(page), start=1):
                yield f"{name}:{number}", re.sub(r"`[^`]*`", "`…`", line)


def messages() -> Iterator[tuple[str, str]]:
    """Every text of the program with a space in it, but for docstrings and what is code."""
    for path in sorted(SOURCE.rglob("*.py")):
        for line, text in sentences_in(tree_of(path)):
            yield f"{name_of(path)}:{line}", text


def sentences_in(tree: ast.Module) -> Iterator[tuple[int, str]]:
    nodes = list(ast.walk(tree))
    parts = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    parts |= {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            texts = (str(p.value) if isinstance(p, ast.Constant) else "{}" for p in node.values)
            yield node.lineno, "".join(texts)
        elif isinstance(node, ast.Constant) and id(node) not in parts and " " in str(node.value):
            yield node.lineno, str(node.value)


def quaint(texts: Iterator[tuple[str, str]]) -> list[str]:
    hits = ((place, text, QUAINT.search(text)) for place, text in texts)
    return [f"{place}: {hit[0]!r} in {text.strip()[:120]!r}" for place, text, hit in hits if hit]


def test_pages_are_in_plain_english() -> None:
    assert quaint(prose()) == [], "say it as you would say it aloud"


def test_messages_are_in_plain_english() -> None:
    """Help, settings, metrics, the API and events are pages as well (`make docs`)."""
    assert quaint(messages()) == [], "say it as you would say it aloud"


@pytest.mark.parametrize(
    "text",
    [
        "the key stands twice",
        "stdin cannot be had here",
        "'x' is no mapping",
        "a name that cannot be",
        "rows that are none",
        "register it anew",
        "results lie in NATS",
        "Without further ado",
        "3 tasks came to the same",
        "FORMAT and the like",
    ],
)
def test_quaint_turns_are_found(text: str) -> None:
    assert QUAINT.search(text)


@pytest.mark.parametrize(
    "text",
    [
        "there is no such file",
        "it is no longer known",
        "NaN stands for not a number",
        "a stand-in for the API",
        "a file that cannot be read",
    ],
)
def test_plain_words_are_left_alone(text: str) -> None:
    assert not QUAINT.search(text)
