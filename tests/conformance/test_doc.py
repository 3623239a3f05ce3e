"""DOC: what a document is, how it is read, and what it means."""

import pytest
import yaml
from tests.conformance.cases import ACCEPTED, UNREADABLE, Case, Unreadable, cases

from noetl.playbook.finding import Place
from noetl.playbook.load import Loaded, load, load_valid
from noetl.playbook.model import Executor, KeychainEntry, LeaseSpec, Limits, Playbook, Timeout
from noetl.playbook.plan import make_plan
from noetl.playbook.workload import materialize

HEAD = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: case, path: tests/case }
"""
WORKFLOW = """
workflow:
  - step: start
    tool: [ { work: { kind: noop } } ]
"""


def with_workload(text: str) -> Loaded:
    """A playbook whose workload is this text, indented by two."""
    lines = "".join(f"  {line}\n" for line in text.splitlines())
    return load(f"{HEAD}workload:\n{lines}{WORKFLOW}")


def assert_said(case: Case) -> None:
    assert load(case.text).findings == tuple(said.finding() for said in case.findings)


@pytest.mark.rule("DOC-1")
@pytest.mark.parametrize("case", cases("document", "DOC-1"), ids=str)
def test_root_keys(case: Case) -> None:
    assert_said(case)


@pytest.mark.rule("DOC-2")
@pytest.mark.parametrize("case", cases("document", "DOC-2"), ids=str)
def test_version_kind_and_metadata(case: Case) -> None:
    assert_said(case)


@pytest.mark.rule("DOC-2")
def test_other_keys_of_metadata_are_free() -> None:
    text = f"{HEAD}{WORKFLOW}".replace("name: case,", "name: case, owner: me, version: 2.1,")
    playbook = load_valid(text)
    assert playbook.metadata == {
        "name": "case",
        "owner": "me",
        "version": 2.1,
        "path": "tests/case",
    }
    assert (playbook.name, playbook.path) == ("case", "tests/case")


@pytest.mark.rule("DOC-3")
@pytest.mark.parametrize("case", cases("document", "DOC-3"), ids=str)
def test_the_workload_is_a_mapping(case: Case) -> None:
    assert_said(case)


@pytest.mark.rule("DOC-3")
def test_the_workload_is_kept_as_written() -> None:
    loaded = with_workload('host: example.com\nurl: "https://{{ workload.host }}"')
    assert loaded.playbook is not None
    assert loaded.playbook.workload == {
        "host": "example.com",
        "url": "https://{{ workload.host }}",
    }


@pytest.mark.rule("DOC-3", "TPL-2")
def test_the_workload_knows_the_execution() -> None:
    loaded = with_workload('key: "runs/{{ execution_id }}"')
    assert loaded.playbook is not None
    plan = make_plan(loaded.playbook, "")
    assert materialize(plan, {}, "x1") == {"key": "runs/x1"}


@pytest.mark.rule("DOC-4")
@pytest.mark.parametrize("case", cases("document", "DOC-4"), ids=str)
def test_the_executor(case: Case) -> None:
    assert_said(case)


@pytest.mark.rule("DOC-4")
def test_the_executor_has_defaults() -> None:
    assert load_valid(f"{HEAD}{WORKFLOW}").executor == Executor(
        kind="local",
        pool="default",
        entry_step=None,
        final_step=None,
        reference_first=False,
        fail_fast=False,
        limits=Limits(
            max_payload_bytes=1_048_576,
            max_task_runs=100_000,
            max_step_runs=100_000,
            timeout=None,
        ),
    )


def every_block() -> Playbook:
    (path,) = [path for path in ACCEPTED if path.stem == "every_block"]
    return load_valid(path.read_bytes())


@pytest.mark.rule("DOC-4")
def test_the_executor_says_what_it_says() -> None:
    assert every_block().executor == Executor(
        kind="distributed",
        pool="heavy",
        entry_step="begin",
        final_step="tidy",
        fail_fast=True,
        limits=Limits(
            max_payload_bytes=65_536, max_task_runs=1000, max_step_runs=500, timeout=3600
        ),
    )


@pytest.mark.rule("DOC-4")
def test_defaults_lie_under_every_spec_and_the_nearest_wins() -> None:
    begin, left, right, *_ = every_block().steps
    assert (begin.timeout, begin.lease) == (600, LeaseSpec(ttl=30, heartbeat=10))
    assert (left.timeout, left.lease) == (60, LeaseSpec(ttl=60, heartbeat=10))
    assert left.loop is not None
    assert (left.loop.max_in_flight, left.loop.on_failure) == (2, "stop")
    add, each = left.tasks
    assert (add.spec.timeout, add.spec.client_retries) == (Timeout(total=5.5), 1)
    assert each.inner is not None
    assert (each.inner.loop.max_in_flight, each.inner.loop.on_failure) == (4, "continue")
    assert each.inner.tasks[0].spec.timeout == Timeout(connect=2, total=20)
    assert right.tasks[0].spec.resources == {"cpu": 1}
    routers = [step.router for step in (begin, left, right)]
    assert [router.mode for router in routers if router] == ["inclusive", "exclusive", "inclusive"]
    assert [router.on_failure for router in routers if router] == ["guarded", "all", "guarded"]


@pytest.mark.rule("DOC-4")
def test_lists_of_defaults_are_replaced_not_joined() -> None:
    rules = "policy: { rules: [ { when: true, then: { do: fail } } ] }"
    text = f"""{HEAD}
executor: {{ spec: {{ defaults: {{ task: {{ timeout: 3, {rules} }} }} }} }}
workflow:
  - step: start
    tool:
      - near: {{ kind: noop, spec: {{ policy: {{ rules: [] }} }} }}
      - far: {{ kind: noop }}
"""
    near, far = load_valid(text).steps[0].tasks
    assert (near.spec.timeout, near.spec.rules) == (Timeout(total=3), ())
    assert far.spec.timeout == Timeout(total=3)
    assert far.spec.rules is not None
    assert [rule.then.do for rule in far.spec.rules] == ["fail"]


@pytest.mark.rule("DOC-5")
@pytest.mark.parametrize("case", cases("document", "DOC-5"), ids=str)
def test_the_entry_step_exists(case: Case) -> None:
    assert_said(case)


@pytest.mark.rule("DOC-5")
@pytest.mark.parametrize(
    ("entry", "names", "unreached"),
    [
        ("b", ("a", "b", "start"), ["a", "start"]),
        (None, ("a", "b", "start"), ["a", "b"]),
        (None, ("a", "b"), ["b"]),
    ],
)
def test_the_entry_is_named_or_start_or_first(
    entry: str | None, names: tuple[str, ...], unreached: list[str]
) -> None:
    steps = [{"step": name, "tool": [{"work": {"kind": "noop"}}]} for name in names]
    document = {**yaml.safe_load(HEAD), "workflow": steps}
    if entry:
        document["executor"] = {"spec": {"entry_step": entry}}
    findings = load(yaml.safe_dump(document, sort_keys=False)).findings
    said = [f"no arc leads from the entry step to '{name}': it never runs" for name in unreached]
    assert [finding.message for finding in findings] == said


@pytest.mark.rule("DOC-6")
@pytest.mark.parametrize("case", cases("document", "DOC-6"), ids=str)
def test_the_workbook_is_a_mapping(case: Case) -> None:
    assert_said(case)


@pytest.mark.rule("DOC-6", "KEY-1")
def test_workbook_and_keychain_are_read() -> None:
    playbook = every_block()
    assert [(name, task.label, task.kind) for name, task in playbook.workbook.items()] == [
        ("say", "say", "script")
    ]
    assert playbook.keychain == (
        KeychainEntry(
            place=Place("keychain[0]", 14, 5),
            name="api",
            kind="bearer",
            provider="environment",
            key="API_TOKEN",
        ),
        KeychainEntry(
            place=Place("keychain[1]", 15, 5),
            name="pg",
            kind="postgres_credential",
            fields={"host": "db.example.com", "port": 5432, "database": "sales"},
        ),
    )


@pytest.mark.rule("DOC-7")
@pytest.mark.parametrize("case", cases("document", "DOC-7"), ids=str)
def test_faults_of_the_text(case: Case) -> None:
    assert_said(case)


@pytest.mark.rule("DOC-7")
@pytest.mark.parametrize("text", UNREADABLE, ids=lambda text: text.name)
def test_a_text_that_cannot_be_read(text: Unreadable) -> None:
    loaded = load(text.source)
    assert (loaded.playbook, loaded.document) == (None, None)
    (finding,) = loaded.findings
    said = (finding.code, finding.line, finding.column, finding.message)
    assert said == (text.code, text.line, text.column, text.message)
    assert finding.hint


@pytest.mark.rule("DOC-7")
@pytest.mark.parametrize(
    ("written", "value"),
    [
        *((word, word) for word in ("on", "off", "yes", "no", "y", "n", "On", "NO")),
        *(
            (word, word)
            for word in ("0777", "1:30", "2024-01-01", "1_000", "0b11", "12e", "-a", ".")
        ),
        ("1e3", 1000.0),
        ("1.5", 1.5),
        ("1.", 1.0),
        (".5", 0.5),
        ("-2E-2", -0.02),
        ("12", 12),
        ("+12", 12),
        ("-12", -12),
        ("0", 0),
        ("0o17", 15),
        ("0x1F", 31),
        *((word, None) for word in ("null", "Null", "NULL", "~", "")),
        *((word, True) for word in ("true", "True", "TRUE")),
        *((word, False) for word in ("false", "False", "FALSE")),
        ("tRUE", "tRUE"),
        ("'12'", "12"),
        ('"true"', "true"),
        ("!!str 12", "12"),
        ("!!int '12'", 12),
        ("!!float 3", 3.0),
        ("!!null ''", None),
        ("!!bool 'true'", True),
        ("!!map { b: 1 }", {"b": 1}),
        ("!!seq [1]", [1]),
    ],
)
def test_scalars_of_yaml_1_2(written: str, value: object) -> None:
    loaded = with_workload(f"a: {written}")
    assert loaded.findings == ()
    assert loaded.playbook is not None
    found = loaded.playbook.workload["a"]
    assert (type(found), found) == (type(value), value)


@pytest.mark.rule("DOC-7")
def test_aliases_share_a_value_and_a_byte_order_mark_is_ignored() -> None:
    text = f"\ufeff{HEAD}workload:\n  a: &a [1, 2]\n  b: *a\n{WORKFLOW}"
    assert load(text).findings == ()
    assert load_valid(text.encode()).workload == {"a": [1, 2], "b": [1, 2]}


@pytest.mark.rule("DOC-7")
@pytest.mark.parametrize(
    ("limit", "text"),
    [
        ("depth", "a: " + "[" * 97 + "]" * 97),
        ("nodes", "a: [" + "1," * 199_000 + "]"),
        ("aliases", "a: &a [" + "1," * 990 + "]\nb: [" + "*a," * 190 + "]"),
    ],
)
def test_what_is_within_the_limits_is_read(limit: str, text: str) -> None:
    assert with_workload(text).findings == (), limit


def test_the_document_is_the_plain_value_of_the_text() -> None:
    for path in ACCEPTED:
        text = path.read_text()
        assert load(text).document == yaml.safe_load(text)
