"""What the fields of an answer are, as they are typed."""

import pytest

from noetl.cli.answers import field_of, taker_words, text_fields
from noetl.server.views.standing import Standing
from noetl.server.waiting import WaitReason


def asked(**types: str) -> WaitReason:
    form = {name: {"type": kind} for name, kind in types.items()}
    return WaitReason(step="ask", kind="approval", words="", form=form)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("n=12", 12),
        ("n=many", "many"),
        ("note=12", "12"),
        ("note=true", "true"),
        ("note=null", "null"),
        ("note=1.50", "1.50"),
        ("note=yes it is", "yes it is"),
        ('note="12"', "12"),
        ("both=12", 12),
        ("unknown=12", 12),
    ],
)
def test_a_field_of_text_takes_what_is_typed(text: str, value: object) -> None:
    waits = [asked(n="number", note="string", both="string"), asked(both="integer")]
    assert field_of(text, text_fields(waits)) == (text.partition("=")[0], value)


def heard(place: str, *signals: str) -> WaitReason:
    return WaitReason(step="load", kind="signal", words="", place=place, signals=signals)


@pytest.mark.parametrize(
    ("waits", "said"),
    [
        ([heard("load:0", "go", "stop")], "'load:0' waits for it"),
        (
            [heard("load:0", "go"), heard("load:1", "go")],
            "'load:0', 'load:1' wait for it, and the first of them whose `when` lets it takes it",
        ),
        (
            [heard(f"load:{n}", "go") for n in range(9)],
            "'load:0', 'load:1', 'load:2', 'load:3', 'load:4' and 4 more wait for it, and",
        ),
        ([], "nothing waits for it now, so it is kept for the next wait of that name"),
        (
            [heard("load:0", "goo"), heard("load:1", "goo")],
            "of that name; awaited now: 'goo' (load:0)",
        ),
    ],
)
def test_who_may_take_a_signal_is_told(waits: list[WaitReason], said: str) -> None:
    assert said in taker_words(standing(waits), "go")


def standing(waits: list[WaitReason]) -> Standing:
    return Standing(
        execution_id="x",
        path="p",
        version="1",
        status="running",
        interrupted=False,
        owner=None,
        seq=1,
        started_at="",
        updated_at="",
        finished_at=None,
        duration_ms=0,
        error=None,
        steps=[],
        waits=waits,
    )
