"""VAL: every fault that is rejected or warned of, with line, column, path, message and hint."""

from pathlib import Path

import jsonschema
import msgspec
import pytest
from tests.conformance.cases import (
    ACCEPTED,
    OLDER,
    UNREADABLE,
    Case,
    all_cases,
    cases,
)
from tests.support.scenario import scenario
from tests.support.steps import arc, call, otherwise, playbook, step

from noetl.errors import PlaybookRejected
from noetl.playbook.codes import CODES
from noetl.playbook.load import load, load_kept, load_valid
from noetl.playbook.schema import json_schema


def assert_said(case: Case) -> None:
    """Exactly the expected findings, in order, and a playbook only where none is an error."""
    loaded = load(case.text)
    expected = tuple(said.finding() for said in case.findings)
    assert loaded.findings == expected
    assert (loaded.playbook is None) == any(one.severity == "error" for one in expected)


@pytest.mark.rule("VAL-1")
@pytest.mark.parametrize("case", cases("val_1"), ids=str)
def test_the_formal_rejections(case: Case) -> None:
    assert_said(case)


@pytest.mark.rule("VAL-2")
@pytest.mark.parametrize("case", cases("val_2"), ids=str)
def test_the_further_rejections(case: Case) -> None:
    assert_said(case)


@pytest.mark.rule("VAL-8")
@pytest.mark.parametrize("case", cases("val_8"), ids=str)
def test_code_and_statements_are_read(case: Case) -> None:
    assert_said(case)


@pytest.mark.rule("VAL-3")
@pytest.mark.parametrize("case", cases("val_3"), ids=str)
def test_the_warnings(case: Case) -> None:
    assert_said(case)


@pytest.mark.rule("VAL-5", "TPL-2")
@pytest.mark.parametrize("case", cases("val_5"), ids=str)
def test_names_that_nothing_defines(case: Case) -> None:
    assert_said(case)


@pytest.mark.rule("VAL-6")
@pytest.mark.parametrize("case", cases("val_6"), ids=str)
def test_what_would_be_ignored(case: Case) -> None:
    assert_said(case)


@pytest.mark.rule("SCOPE-6")
@pytest.mark.parametrize("case", cases("scope_6"), ids=str)
def test_writes_that_race(case: Case) -> None:
    assert_said(case)


@pytest.mark.rule("NEXT-6", "NEXT-7")
@pytest.mark.parametrize("case", cases("graph"), ids=str)
def test_final_steps_and_joins(case: Case) -> None:
    assert_said(case)


@pytest.mark.rule("SCOPE-2", "SCOPE-5", "LOOP-1", "LOOP-5", "LOOP-7", "KEY-1", "TOOL-2", "TASK-1")
@pytest.mark.parametrize("case", cases("language"), ids=str)
def test_the_rest_of_the_language(case: Case) -> None:
    assert_said(case)


@pytest.mark.rule("VAL-2")
@pytest.mark.parametrize("case", cases("older_words"), ids=str)
def test_words_of_older_dialects(case: Case) -> None:
    assert_said(case)


@pytest.mark.rule("VAL-1")
def test_seven_faults_give_seven_findings() -> None:
    case = next(case for case in cases("val_1") if case.name.startswith("seven"))
    assert [said.code for said in case.findings] == [
        "root-vars",
        "step-when",
        "loop-incomplete",
        "unknown-kind",
        "policy-shape",
        "unknown-step",
        "duplicate-step",
    ]
    with pytest.raises(PlaybookRejected, match="the playbook has 7 errors") as rejected:
        load_valid(case.text)
    assert [one.code for one in rejected.value.findings] == [said.code for said in case.findings]


# The complete examples of the older dialects: what is said on which line.
OLDER_SAID = {
    "case_dialect": [
        (11, "retired-word", "workbook"),
        (23, "retired-word", "workflow[0].tool"),
        (25, "retired-word", "workflow[0].tool.auth"),
        (26, "retired-word", "workflow[0].tool.libs"),
        (30, "retired-word", "workflow[0].case"),
        (37, "retired-word", "workflow[1].tool"),
        (39, "sql-template", "workflow[1].tool.query"),
        (40, "retired-word", "workflow[1].vars"),
        (43, "retired-word", "workflow[1].case"),
        (50, "retired-word", "workflow[2].tool"),
        (54, "retired-name", "workflow[2].tool.args.email"),
        (55, "retired-word", "workflow[2].case"),
        (62, "retired-word", "workflow[3].tool"),
        (64, "retired-word", "workflow[3].tool.auth"),
        (65, "retired-word", "workflow[3].tool.libs"),
    ],
    "eval_dialect": [
        (14, "retired-word", "workflow[0].spec.next_mode"),
        (16, "step-when", "workflow[0].when"),
        (26, "retired-word", "workflow[0].tool[0].init.eval"),
        (40, "retired-word", "workflow[0].tool[1].fetch_page.eval"),
        (59, "retired-word", "workflow[0].tool[2].save_page.eval"),
        (72, "retired-word", "workflow[0].tool[3].paginate.eval"),
        (81, "retired-word", "workflow[0].next"),
    ],
}
# By the last word of the path: how the hint begins.
REPLACEMENTS = {
    "workbook": "write workbook: { tasks: { name: { kind: … } } }.",
    "tool": "write tool: [ { label: { kind: … } } ].",
    "auth": "leave the input out.",
    "libs": "leave the input out.",
    "case": 'write next: { arcs: [ { step: …, when: "{{ … }}" } ] }.',
    "query": 'bind values: "… WHERE id = %(id)s" with params: { id: "{{ … }}" }',
    "vars": "write spec: { policy: { rules: [ { else: { then: { set_ctx: { … } } } } ] } }",
    "email": "write ctx.name, set by set_ctx, or iter.name.",
    "next_mode": "write next: { spec: { mode: inclusive } }.",
    "when": 'write spec: { policy: { admit: { rules: [ { when: "{{ … }}", then: { allow: true } },',
    "eval": "write spec: { policy: { rules: [ { when: …, then: { do: … } } ] } } in the task.",
    "next": "write next: { arcs: [ { step: … } ] }, with spec: { mode: inclusive }",
}


@pytest.mark.rule("VAL-2")
@pytest.mark.parametrize("path", OLDER, ids=lambda path: path.stem)
def test_complete_examples_of_older_dialects_name_each_replacement(path: Path) -> None:
    findings = load(path.read_bytes()).findings
    assert [(one.line, one.code, one.path) for one in findings] == OLDER_SAID[path.stem]
    for one in findings:
        assert one.hint.startswith(REPLACEMENTS[one.path.rsplit(".", 1)[-1]])
        assert one.code == "sql-template" or one.hint.endswith(
            "`noetl migrate FILE` does it for you."
        )


@pytest.mark.rule("VAL-1", "VAL-2", "VAL-3")
@pytest.mark.parametrize("path", ACCEPTED, ids=lambda path: path.stem)
def test_complete_examples_of_the_language_are_clean(path: Path) -> None:
    loaded = load(path.read_bytes())
    assert loaded.findings == ()
    assert loaded.playbook is not None


def test_every_code_is_shown_by_a_case() -> None:
    shown = {said.code for case in all_cases() for said in case.findings}
    elsewhere = EXCESSIVE | MIGRATION | TRIGGERS | BROUGHT | CACHED
    assert shown | {one.code for one in UNREADABLE} | elsewhere == set(CODES)


EXCESSIVE = {"too-many-templates"}  # its cases are long texts, made in test_load
MIGRATION = {"no-counterpart", "changed-meaning"}  # their cases are those of test_dia_s4
BROUGHT = {"undeclared-key", "other-type", "unknown-playbook"}  # see test_val_inputs
CACHED = {"secret-key", "never-found"}  # see test_cache
TRIGGERS = {  # their cases are those of test_triggers
    *("no-playbook", "bad-schedule", "trigger-choice", "trigger-path", "trigger-payload"),
    "trigger-circle",
}


VALIDATOR = jsonschema.Draft202012Validator(json_schema())
# Faults between values, or inside a text: no schema can see them.
UNSEEN = {
    *("duplicate-step", "unknown-step", "duplicate-label", "else-not-last"),
    *("template-syntax", "unknown-entry", "unknown-final", "final-entry", "arc-to-final"),
    *("final-next", "join-source", "join-count", "join-arc", "iterator-name"),
    *("duplicate-credential", "unknown-workbook-task", "workbook-cycle"),
    *("duplicate-key", "merge-key", "number-range", "unknown-name"),
    *("reserved-name", "reduced-twice", "limit-over", "code-syntax", "sql-params"),
}
# A schema sees some of these, depending on the rest of the text.
SOMETIMES_SEEN = {"jump-target", "key-not-text", "unknown-tag"}
ERRORS = {code for code, meaning in CODES.items() if meaning.severity == "error"}
SEEN = [case for case in all_cases() if case.codes & ERRORS - UNSEEN - SOMETIMES_SEEN]
ALLOWED = [case for case in all_cases() if not case.codes & ERRORS - UNSEEN]


@pytest.mark.rule("VAL-4")
@pytest.mark.parametrize("case", SEEN, ids=str)
def test_the_schema_rejects_what_it_can_see(case: Case) -> None:
    assert not VALIDATOR.is_valid(load(case.text).document)


@pytest.mark.rule("VAL-4")
@pytest.mark.parametrize("case", ALLOWED, ids=str)
def test_the_schema_leaves_the_rest_to_validation(case: Case) -> None:
    document = load(case.text).document
    assert [error.message for error in VALIDATOR.iter_errors(document)] == []


@pytest.mark.rule("VAL-4")
@pytest.mark.parametrize("path", ACCEPTED, ids=lambda path: path.stem)
def test_the_schema_accepts_complete_examples(path: Path) -> None:
    document = load(path.read_bytes()).document
    assert [error.message for error in VALIDATOR.iter_errors(document)] == []


@pytest.mark.rule("VAL-4")
@pytest.mark.parametrize("path", OLDER, ids=lambda path: path.stem)
def test_the_schema_rejects_older_dialects(path: Path) -> None:
    assert not VALIDATOR.is_valid(load(path.read_bytes()).document)


@pytest.mark.rule("VAL-4")
def test_the_schema_is_a_schema_and_explains_every_key() -> None:
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    blocks = [schema, *schema["$defs"].values()]
    silent = [
        name
        for block in blocks
        for name, key in block.get("properties", {}).items()
        if "description" not in key and "$ref" not in str(key)
    ]
    assert silent == []


@pytest.mark.rule("VAL-5")
def test_what_was_accepted_once_can_still_be_loaded() -> None:
    """A log refers to the text that it began with, whatever is checked by now."""
    text = playbook(step("start", call("see", body="{{ args.nope }}")))
    with pytest.raises(PlaybookRejected):
        load_valid(text)
    assert load_kept(text).steps[0].name == "start"
    with pytest.raises(PlaybookRejected):
        load_kept(text.replace("http", "htpp"))


SAME_WORDS = {
    "input": step("start", call("see", body="{{ workload.nmae }}")),
    "bare name": step("start", call("see", body="{{ nmae }}")),
    "set_ctx": step("start", call("see", otherwise(set_ctx={"x": "{{ workload.nmae }}"}))),
    "set_iter": step("start", call("see", otherwise(set_iter={"x": "{{ workload.nmae }}"}))),
    "loop.in": step("start", call("see"), loop={"in": "{{ workload.nmae }}", "iterator": "n"}),
    "arc args": step("start", call("see"), arcs=[arc("start", x="{{ workload.nmae }}")]),
}


@pytest.mark.rule("VAL-5", "TPL-3")
@pytest.mark.parametrize("place", SAME_WORDS)
def test_the_run_says_what_validation_said(place: str) -> None:
    made = scenario(SAME_WORDS[place], workload={"name": 1})
    [finding] = [one for one in load(made.text).findings if one.code == "unbound-name"]
    meant = "name" if place == "bare name" else "workload.name"
    assert finding.hint == f"did you mean '{meant}'?"
    said = finding.message.partition(" unless")[0]
    assert said == f"'{meant.replace('name', 'nmae')}' is undefined"
    assert made.run().error["message"].endswith(f"{said}; {finding.hint}")


@pytest.mark.rule("VAL-5", "EVT-5")
@pytest.mark.parametrize("place", ["loop.in", "arc args"])
def test_an_old_log_is_decided_in_its_old_words(place: str) -> None:
    made = scenario(SAME_WORDS[place], workload={"name": 1})
    asked = msgspec.structs.replace(made.request(None, None), rules=2)
    made.request = lambda *_: asked  # type: ignore[method-assign]
    assert made.run().error["message"].endswith("; define it or add `| default(…)`")


@pytest.mark.rule("VAL-5")
def test_what_a_request_brings_needs_no_warning() -> None:
    text = playbook(step("start", call("see", body="{{ workload.deep.b }}{{ ctx.c }}{{ d }}")))
    assert len(load(text).findings) == 3
    brought = {"workload": {"deep": {"b": 1}, "d": 1}, "ctx": {"c": 1}}
    assert load(text, brought=brought).findings == ()
    less = {"workload": {"deep": {"a": 1}}}
    assert [one.message for one in load(text, brought=less).findings] == [
        "'workload.deep.b' is undefined unless a request brings it",
        "'ctx.c' is undefined unless a request brings it",
        "'d' is undefined unless a request brings it",
    ]
