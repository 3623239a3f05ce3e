"""Every due rule has a test, every mark names a rule, and the page says so."""

import re
from pathlib import Path
from textwrap import dedent

import pytest
from tests.conformance.matrix import PAGE, Family, Rule, marks_in, read_families, read_marks, render

ID = re.compile(r"[A-Z]+-(\d+|S2|S4|UP)")


def test_ids_are_unique_and_belong_to_their_family() -> None:
    families = read_families()
    ids = [rule.id for family in families.values() for rule in family.rules]
    assert len(ids) == len(set(ids))
    for name, family in families.items():
        assert [rule.id for rule in family.rules if not rule.id.startswith(f"{name}-")] == []
    assert [id for id in ids if not ID.fullmatch(id)] == []


def test_each_rule_is_one_sentence_that_fits_a_table() -> None:
    rules = [rule for family in read_families().values() for rule in family.rules]
    assert [rule.id for rule in rules if not rule.says.endswith(".") or "|" in rule.says] == []


def test_marks_name_rules_that_exist() -> None:
    known = {rule.id for family in read_families().values() for rule in family.rules}
    strangers = [mark for mark in read_marks() if mark.rule not in known]
    assert strangers == [], "write the ids as literal text, as they stand in rules.toml"


def test_due_rules_are_tested() -> None:
    tested = {mark.rule for mark in read_marks()}
    due = [rule.id for family in read_families().values() if family.due for rule in family.rules]
    assert [id for id in due if id not in tested] == [], "a rule that is due has no test"


def test_the_page_is_fresh() -> None:
    assert PAGE.read_text("utf-8") == render(read_families(), read_marks()), "run `make docs`"


CASES = {
    "a function": (
        '@pytest.mark.rule("DOC-1", "DOC-2")\ndef test_a(): ...',
        [("DOC-1", "test_a"), ("DOC-2", "test_a")],
    ),
    "an async function": ('@pytest.mark.rule("A-1")\nasync def test_a(): ...', [("A-1", "test_a")]),
    "a short name": (
        'rule = pytest.mark.rule\n@rule("A-1")\ndef test_a(): ...',
        [("A-1", "test_a")],
    ),
    "a class": ('@pytest.mark.rule("A-1")\nclass TestA:\n    x = 1', [("A-1", "TestA")]),
    "a method": (
        'class TestA:\n    @pytest.mark.rule("A-1")\n    def test_a(self): ...',
        [("A-1", "TestA::test_a")],
    ),
    "a module": ('pytestmark = pytest.mark.rule("A-1")', [("A-1", "")]),
    "a case in a decorator": (
        """
        @pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.rule("A-1"))])
        def test_a(x): ...
        """,
        [("A-1", "test_a")],
    ),
    "a table of cases": (
        """
        TABLE = [pytest.param(1, marks=[pytest.mark.rule("A-1")])]
        @pytest.mark.parametrize("x", TABLE)
        def test_a(x): ...
        @pytest.mark.parametrize("x", sorted(TABLE))
        def test_b(x): ...
        def test_c(): ...
        """,
        [("A-1", "test_a"), ("A-1", "test_b")],
    ),
    "an id that is not a literal": (
        "@pytest.mark.rule(ONE)\ndef test_a(): ...",
        [(None, "test_a")],
    ),
    "another mark": ('@pytest.mark.usefixtures("rule")\ndef test_a(): ...', []),
}


@pytest.mark.parametrize(("text", "expected"), CASES.values(), ids=CASES)
def test_marks_are_found_on(text: str, expected: list[tuple[str | None, str]]) -> None:
    found = [(mark.rule, mark.test) for mark in marks_in(dedent(text), "tests/test_x.py")]
    assert found == expected


def test_the_page_tells_tested_rules_from_the_others() -> None:
    rules = (Rule(id="A-1", says="One."), Rule(id="A-2", says="Two.", ext="whole"))
    families = {"A": Family(title="First", due=False, rules=rules)}
    marks = list(marks_in('@pytest.mark.rule("A-1")\ndef test_a(): ...', "tests/unit/test_x.py"))
    page = render(families, marks)
    spec = "reference/specification.md"
    link = "[unit/test_x.py::test_a](../tests/unit/test_x.py)"
    assert f"| [A-1]({spec}#a-1) | One. | tested | {link} |\n" in page
    assert f"| [A-2]({spec}#a-2) | Two. *(ext)* | not yet |  |\n" in page
    assert "1 of 2 rules are tested." in page


def test_the_page_says_what_is_left_out() -> None:
    rules = (Rule(id="A-1", says="One.", left_out="the rest"),)
    families = {"A": Family(title="First", due=True, rules=rules)}
    marks = list(marks_in('@pytest.mark.rule("A-1")\ndef test_a(): ...', "tests/unit/test_x.py"))
    page = render(families, marks)
    assert "| One. | in part: the rest | [unit/test_x.py::test_a]" in page
    assert "1 of 1 rules are tested, 1 of them in part." in page


def test_what_is_left_out_fits_a_table() -> None:
    rules = [rule for family in read_families().values() for rule in family.rules]
    assert [rule.id for rule in rules if "|" in rule.left_out or "\n" in rule.left_out] == []


def test_marks_are_read_from_every_folder(tmp_path: Path) -> None:
    for name in ("unit/b/test_b.py", "conformance/test_a.py"):
        file = tmp_path / "tests" / name
        file.parent.mkdir(parents=True)
        file.write_text('@pytest.mark.rule("A-1")\ndef test_it(): ...')
    files = [mark.file for mark in read_marks(tmp_path)]
    assert files == ["tests/conformance/test_a.py", "tests/unit/b/test_b.py"]
