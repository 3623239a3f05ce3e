"""START-1: what validation says of triggers."""

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from noetl.playbook.load import load, load_document, load_trigger
from noetl.playbook.occurrences import Schedule
from noetl.playbook.schema import trigger_schema
from noetl.playbook.triggers import OnEnd, Subject, Trigger, Webhook


def trigger(on: dict[str, Any], **spec: Any) -> str:
    return json.dumps(
        {
            "apiVersion": "noetl.io/v2",
            "kind": "Trigger",
            "metadata": {"name": "nightly", "path": "sales/nightly"},
            "spec": {"playbook": "sales/load", "on": on, **spec},
        },
        indent=1,
    )


HOURLY = {"schedule": {"cron": "0 * * * *"}}


@pytest.mark.rule("START-1")
@pytest.mark.parametrize(
    ("on", "kind", "made"),
    [
        (HOURLY, "schedule", Schedule(cron="0 * * * *")),
        (
            {"schedule": {"every": 90, "catch_up": "all", "limit": 5, "overlap": "queue"}},
            "schedule",
            Schedule(every=90, catch_up="all", limit=5, overlap="queue"),
        ),
        (
            {"schedule": {"at": "2026-03-29T02:30:00", "timezone": "Europe/Berlin", "jitter": 5}},
            "schedule",
            Schedule(at="2026-03-29T02:30:00", timezone="Europe/Berlin", jitter=5),
        ),
        ({"webhook": {"credential": "shop"}}, "webhook", Webhook(credential="shop")),
        (
            {"subject": {"subject": "orders.*", "stream": "ORDERS"}},
            "subject",
            Subject(subject="orders.*", stream="ORDERS"),
        ),
        (
            {"execution": {"path": "sales/*", "status": "failed"}},
            "execution",
            OnEnd(path="sales/*", status=("failed",)),
        ),
        ({"execution": {"path": "*"}}, "execution", OnEnd(path="*")),
    ],
)
def test_every_kind_is_read(on: dict[str, Any], kind: str, made: Any) -> None:
    found = load_trigger(trigger(on, version=3, payload={"day": "{{ trigger.at }}"}))
    assert found == Trigger(
        name="nightly",
        path="sales/nightly",
        metadata={"name": "nightly", "path": "sales/nightly"},
        kind=kind,
        playbook="sales/load",
        version=3,
        payload={"day": "{{ trigger.at }}"},
        on=made,
    )


def codes(text: str) -> list[tuple[str, str]]:
    return [(one.code, one.path) for one in load_document(text).findings]


@pytest.mark.rule("START-1")
@pytest.mark.parametrize(
    ("on", "code", "path"),
    [
        ({}, "trigger-choice", "spec.on"),
        ({**HOURLY, "execution": {"path": "*"}}, "trigger-choice", "spec.on"),
        ({"schedul": {"every": 5}}, "unknown-key", "spec.on.schedul"),
        ({"schedule": {}}, "trigger-choice", "spec.on.schedule"),
        ({"schedule": {"every": 5, "at": "x"}}, "trigger-choice", "spec.on.schedule"),
        ({"schedule": {"every": 0}}, "wrong-value", "spec.on.schedule.every"),
        ({"schedule": {"every": 1e15}}, "wrong-value", "spec.on.schedule.every"),
        ({"schedule": {"every": 9, "jitter": 1e15}}, "wrong-value", "spec.on.schedule.jitter"),
        ({"subject": {"subject": "noetl.>"}}, "wrong-value", "spec.on.subject.subject"),
        ({"subject": {"subject": "$O.a.C.>"}}, "wrong-value", "spec.on.subject.subject"),
        ({"subject": {"subject": "$JS.EVENT.>"}}, "wrong-value", "spec.on.subject.subject"),
        ({"subject": {"subject": "_INBOX.>"}}, "wrong-value", "spec.on.subject.subject"),
        ({"subject": {"subject": "a b"}}, "wrong-value", "spec.on.subject.subject"),
        ({"subject": {"subject": "a\r\nPUB b 0"}}, "wrong-value", "spec.on.subject.subject"),
        ({"subject": {"subject": "a..b"}}, "wrong-value", "spec.on.subject.subject"),
        ({"subject": {"subject": "a.>.b"}}, "wrong-value", "spec.on.subject.subject"),
        ({"subject": {"subject": "a." * 200 + "a"}}, "wrong-value", "spec.on.subject.subject"),
        (
            {"subject": {"subject": "a", "stream": "A.B.>"}},
            "wrong-value",
            "spec.on.subject.stream",
        ),
        (
            {"subject": {"subject": "a", "stream": "../A"}},
            "wrong-value",
            "spec.on.subject.stream",
        ),
        (
            {"subject": {"subject": ">", "stream": "OBJ_noetl-results"}},
            "wrong-value",
            "spec.on.subject.stream",
        ),
        ({"schedule": {"cron": "0 0 31 2 *"}}, "bad-schedule", "spec.on.schedule.cron"),
        ({"schedule": {"cron": "61 * * * *"}}, "bad-schedule", "spec.on.schedule.cron"),
        ({"schedule": {"cron": "* * *"}}, "bad-schedule", "spec.on.schedule.cron"),
        ({"schedule": {"at": "tomorrow"}}, "bad-schedule", "spec.on.schedule.at"),
        (
            {"schedule": {"every": 9, "timezone": "Europe/Berln"}},
            "bad-schedule",
            "spec.on.schedule.timezone",
        ),
        ({"schedule": {"every": 9, "overlap": "skp"}}, "wrong-value", "spec.on.schedule.overlap"),
        ({"webhook": {"scheme": "noetl"}}, "missing-key", "spec.on.webhook"),
        (
            {"execution": {"path": "*", "status": ["faild"]}},
            "wrong-value",
            "spec.on.execution.status",
        ),
    ],
)
def test_what_is_wrong_is_told_where_it_stands(on: dict[str, Any], code: str, path: str) -> None:
    text = trigger(on)
    assert (code, path) in codes(text)
    assert load_document(text).trigger is None


@pytest.mark.rule("START-1")
def test_a_payload_sees_the_trigger_and_nothing_else() -> None:
    text = trigger(
        HOURLY, payload={"a": "{{ workload.x }}", "b": ["{{ trigger.dta }}"], "trigger": 1}
    )
    assert codes(text) == [
        ("unknown-name", "spec.payload.a"),
        ("unknown-name", "spec.payload.b[0]"),
        ("trigger-payload", "spec.payload.trigger"),
    ]
    hints = [one.hint for one in load_document(text).findings]
    assert hints[1] == "did you mean 'data'?"


@pytest.mark.rule("START-1")
@pytest.mark.parametrize("path", ["sales/né?t", "../../executions/x/cancel", "a/./b", "a//b"])
def test_a_path_stands_in_an_address(path: str) -> None:
    text = trigger(HOURLY).replace("sales/nightly", path)
    assert ("trigger-path", "metadata.path") in codes(text)


def test_a_trigger_is_no_playbook_and_says_so() -> None:
    (finding,) = load(trigger(HOURLY)).findings
    assert finding.code == "no-playbook"


def test_broken_yaml_is_told_as_ever() -> None:
    loaded = load_document("kind: Trigger\nkind: Trigger\nspec: [")
    assert loaded.trigger is None
    assert loaded.findings


@pytest.mark.rule("START-1", "VAL-4")
def test_the_schema_says_the_same() -> None:
    schema = trigger_schema()
    Draft202012Validator.check_schema(schema)
    judge = Draft202012Validator(schema)
    assert judge.is_valid(json.loads(trigger(HOURLY, payload={"day": "{{ trigger.at }}"})))
    both = {**HOURLY, "execution": {"path": "*"}}
    wrong: list[dict[str, Any]] = [{}, {"schedule": {}}, both, {"webhook": {}}]
    for on in wrong:
        assert not judge.is_valid(json.loads(trigger(on))), on


@pytest.mark.rule("START-3")
@pytest.mark.parametrize(
    ("schedule", "hint"),
    [
        ({"cron": "0 6 * * *", "timezone": "Europe/Berln"}, "did you mean 'Europe/Berlin'?"),
        ({"cron": "@daily"}, "write '0 0 * * *'"),
        ({"every": "5m"}, "write the seconds as a number: every: 300"),
        (
            {"cron": "0 0 * JNA *"},
            "write minute hour day month weekday, such as '30 6 * * MON-FRI'",
        ),
        ({"crn": "0 0 * * *"}, "did you mean 'cron'?"),
    ],
)
def test_a_schedule_that_is_nearly_right_says_what_was_meant(
    schedule: dict[str, Any], hint: str
) -> None:
    (found,) = load_document(trigger({"schedule": schedule})).findings
    assert found.hint == hint


@pytest.mark.rule("START-3")
def test_a_month_that_there_is_not_is_no_day_that_there_is_not() -> None:
    said = [
        load_document(trigger({"schedule": {"cron": cron}})).findings[0].message
        for cron in ("0 0 * JNA *", "0 0 30 2 *")
    ]
    assert said == [
        "the cron expression '0 0 * JNA *' cannot be read: "
        "the month is 'JNA', expected 1 to 12, or JAN to DEC",
        "the cron expression '0 0 30 2 *' never fires: it names no day that exists",
    ]


@pytest.mark.rule("START-3")
@pytest.mark.parametrize(
    ("cron", "said"),
    [
        ("0 25 * * *", "the hour is '25', expected 0 to 23"),
        ("61 0 3 * * *", "the second is '61', expected 0 to 59"),
        ("0 3 * * FRY", "the day-of-week is 'FRY', expected 0 to 7, or SUN to SAT"),
        ("0 3 * *", "it has 4 fields, expected 5, or 6 with the second first"),
    ],
)
def test_a_cron_expression_says_which_field_is_wrong(cron: str, said: str) -> None:
    found = load_document(trigger({"schedule": {"cron": cron}})).findings[0].message
    assert found == f"the cron expression '{cron}' cannot be read: {said}"


@pytest.mark.rule("START-6")
@pytest.mark.parametrize(
    ("on", "told"),
    [
        ({"path": "sales/*"}, ["trigger-circle"]),
        ({"path": "sales/load", "status": ["completed"]}, ["trigger-circle"]),
        ({"path": "*", "status": "failed"}, []),  # an alarm
        ({"path": "other/*"}, []),
    ],
)
def test_a_trigger_that_starts_itself_is_warned_of(on: dict[str, Any], told: list[str]) -> None:
    found = load_document(trigger({"execution": on}))
    assert [one.code for one in found.findings] == told
    assert found.trigger is not None
