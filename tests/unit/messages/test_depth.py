"""How deep values are nested, by their JSON alone."""

import json
import random
import time
from typing import Any

import msgspec
import pytest

from noetl.errors import ServerRefused
from noetl.messages import events as e
from noetl.messages.depth import DEEPEST, FEW, is_deep, refuse_deep
from noetl.messages.fitting import EventTooDeep, Fitting, is_small

TEXTS = ("", "[[[", '"', "\\", '\\"', "]}", '[{"\\\\"}]', "a\\u005b", "é[")


def nested(levels: int, inside: Any = 1, *, mappings: bool = False) -> Any:
    for _ in range(levels):
        inside = {"k": inside} if mappings else [inside]
    return inside


def levels_of(value: Any) -> int:
    below: list[Any] = list(value.values()) if isinstance(value, dict) else value
    return 1 + max(map(levels_of, below), default=0) if isinstance(value, dict | list) else 0


def any_value(chance: random.Random, room: int) -> Any:
    if room == 0 or chance.random() < 0.3:
        return chance.choice([1, None, 2.5, *TEXTS])
    below = [any_value(chance, room - 1) for _ in range(chance.randint(0, 3))]
    keys = [chance.choice(TEXTS) + str(n) for n in range(len(below))]
    return dict(zip(keys, below, strict=True)) if chance.random() < 0.5 else below


@pytest.mark.parametrize("mappings", [False, True])
def test_a_level_too_many_is_seen(mappings: bool) -> None:
    for inside in (1, *TEXTS, [nested(20)] * 50):
        room = DEEPEST - levels_of(inside)
        for more, deep in ((0, False), (1, True)):
            text = msgspec.json.encode(nested(room + more, inside, mappings=mappings))
            assert is_deep(text) is deep


def test_whatever_stands_in_texts_and_keys() -> None:
    chance = random.Random(7)
    for _ in range(300):
        value = any_value(chance, 6)
        for text in (msgspec.json.encode(value), json.dumps(value, indent=1).encode()):
            for levels in range(8):
                assert is_deep(text, levels) is (levels_of(value) > levels)


def test_many_deep_values_take_no_more_time_than_shallow_ones() -> None:
    """One start of 8 MB, every value of it 150 levels deep, stopped its server for a minute."""

    def took(levels: int) -> float:
        one = b"[" * levels + b"]" * levels
        text = b"[" + b",".join([one] * (500_000 // len(one))) + b"]"
        began = time.process_time()
        assert not is_deep(text)
        return time.process_time() - began

    shallow, deep = (min(took(levels) for _ in range(3)) for levels in (FEW + 1, DEEPEST - 1))
    assert deep < 6 * shallow


def test_no_event_is_deeper() -> None:
    fitting = Fitting("files", "x", 1_000_000, {})
    for levels, fine in ((DEEPEST - 2, True), (DEEPEST + 1, False), (5_000, False)):
        event = e.CtxPatched(step="s", step_run_id="1.0", patch={"x": nested(levels)})
        assert is_small(event, 100_000) is fine
        if fine:
            assert fitting.event(event) is event
        else:
            with pytest.raises(EventTooDeep, match="deeper than 200 levels"):
                fitting.event(event)


def test_what_somebody_sends_is_refused_with_the_reason() -> None:
    refuse_deep(nested(DEEPEST), "the payload")
    for levels in (DEEPEST + 1, 50_000):
        with pytest.raises(ServerRefused, match="of the payload, a value is nested deeper") as why:
            refuse_deep(nested(levels), "the payload")
        assert why.value.status == 422
