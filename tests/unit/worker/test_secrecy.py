"""What a part reports of values that hold a secret."""

import asyncio
from typing import Any

import pytest
from msgspec import structs

from noetl.adapters.memory.object_store import MemoryObjectStore
from noetl.masking import KNOWN, MASK, add_all
from noetl.messages import events as e
from noetl.messages.codec import encode_events
from noetl.messages.names import HELD, REPORTED
from noetl.messages.reference import Reference, secret
from noetl.ports.result_store import ResultStore
from noetl.worker.masked_results import MaskedResults, masked_results
from noetl.worker.secrecy import Secrecy, masked_error

SECRET = "tok-en-12345"
IDS: dict[str, Any] = {"step": "s", "step_run_id": "1.0"}
TASK: dict[str, Any] = {**IDS, "task_run_id": "1.1", "task": "t"}


class Box:
    """Seals by writing down."""

    def __init__(self) -> None:
        self.sealed: list[Any] = []

    ready = True

    def seal(self, value: Any) -> Reference:
        self.sealed.append(value)
        return secret(str(self.sealed.index(value)), "sealed")

    def open(self, reference: Reference) -> Any:
        return self.sealed[int(reference.key)]


@pytest.fixture
def box() -> Box:
    KNOWN.add(SECRET)
    KNOWN.add("short")
    return Box()


def is_secret(value: Any) -> bool:
    return isinstance(value, Reference) and value.sealed is not None


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (f"Bearer {SECRET}", [f"Bearer {SECRET}"]),
        ("harmless", []),
        ("short", ["short"]),
        ("a short text", []),
        ({"a": [SECRET, 1], "b": {"c": SECRET}}, [SECRET, SECRET]),
        ({f"key {SECRET}": 1}, [{f"key {SECRET}": 1}]),
        ([True, None, 1.5], []),
    ],
)
def test_parts_with_a_secret_are_sealed_and_nothing_else(
    value: Any, kept: list[Any], box: Box
) -> None:
    secrecy = Secrecy(box, {})
    sealed = secrecy.sealed(value)
    assert box.sealed == kept
    assert (sealed == value) is (not kept)


def test_numbers_are_secrets_too(box: Box) -> None:
    KNOWN.add("12345678")
    assert is_secret(Secrecy(box, {}).sealed(12345678))
    assert box.sealed == [12345678]
    for number in (12345678.0, -12345678.5):
        assert is_secret(Secrecy(box, {}).sealed(number))
        assert KNOWN.cleaned([number]) == [MASK]


def test_a_secret_that_is_a_fraction_is_found(box: Box) -> None:
    add_all(KNOWN, [{"pin": 9876.125}])
    assert is_secret(Secrecy(box, {}).sealed({"seen": 9876.125})["seen"])
    assert KNOWN.masked("pin 9876.125") == f"pin {MASK}"


def test_the_part_itself_still_knows_the_value(box: Box) -> None:
    bodies: dict[str, Any] = {}
    fitted = Secrecy(box, bodies).fit({"auth": f"Bearer {SECRET}", "page": 1})
    assert is_secret(fitted["auth"])
    assert bodies == {fitted["auth"].key: f"Bearer {SECRET}"}
    assert fitted["page"] == 1


def test_of_an_outcome_the_result_is_sealed_and_the_error_masked(box: Box) -> None:
    error = {"kind": "http", "message": f"refused {SECRET}", "retryable": False}
    fitted = Secrecy(box, {}).fit({"status": "error", "result": SECRET, "error": error})
    assert is_secret(fitted["result"])
    assert fitted["error"] == {"kind": "http", "message": f"refused {MASK}", "retryable": False}
    assert fitted["status"] == "error"


def test_what_holds_no_secret_is_left_as_it_is(box: Box) -> None:
    values = {"a": "harmless"}
    events: list[e.Event] = [e.StepDone(result="harmless", **IDS)]
    secrecy = Secrecy(box, {})
    assert secrecy.fit(values) is values
    assert secrecy.report(events)[0] is events[0]


def test_every_event_of_a_report_is_looked_at(box: Box) -> None:
    error = {"kind": "python", "message": SECRET, "cause": {"kind": "http", "trace": [SECRET]}}
    events: list[e.Event] = [
        e.TaskDone(
            outcome={
                "status": "error",
                "result": {"x": SECRET},
                "error": error,
                "http": {"headers": {"x": SECRET}},
                "meta": {"attempt": 1},
            },
            set_ctx={"a": SECRET},
            set_iter={"b": SECRET},
            set_prev=SECRET,
            **TASK,
        ),
        e.LoopStarted(total=1, items=[SECRET], mode="parallel", **IDS),
        e.IterationFailed(index=0, iteration_id="1.1", error=error, **IDS),
        e.StepDone(result=[SECRET], **IDS),
        e.StepFailed(error=error, **IDS),
        e.StepStarted(**IDS),
    ]
    done, started, iteration, step, failed, last = Secrecy(box, {}).report(events)

    masked = {"kind": "python", "message": MASK, "cause": {"kind": "http", "trace": [MASK]}}
    assert isinstance(done, e.TaskDone)
    assert done.outcome["error"] == masked
    assert done.outcome["http"] == {"headers": {"x": MASK}}
    assert done.outcome["meta"] == {"attempt": 1}
    assert is_secret(done.outcome["result"]["x"])
    assert all(map(is_secret, (done.set_ctx["a"], done.set_iter["b"], done.set_prev)))
    assert isinstance(started, e.LoopStarted)
    assert is_secret(started.items[0])
    assert isinstance(iteration, e.IterationFailed)
    assert iteration.error == masked
    assert isinstance(step, e.StepDone)
    assert is_secret(step.result[0])
    assert isinstance(failed, e.StepFailed)
    assert failed.error == masked
    assert last is events[-1]


def test_a_kind_that_is_also_a_password_stays_a_kind(box: Box) -> None:
    KNOWN.add("postgres")
    event = e.TaskStarted(kind="postgres", **TASK)
    assert Secrecy(box, {}).report([event]) == [event]
    error = {"kind": "postgres", "message": "postgres says no", "retryable": True, "index": 1}
    assert masked_error(error) == {**error, "message": f"{MASK} says no"}


@pytest.mark.parametrize("size", [1, 2, 7, 12, 13, 1000])
def test_a_secret_is_masked_wherever_a_stream_is_cut(size: int, box: Box) -> None:
    del box
    objects = MemoryObjectStore()
    writer = MaskedResults(ResultStore(objects)).open("e1")
    text = b'["' + b"x" * 20 + SECRET.encode() + b"yy" + SECRET.encode() + b'"]'
    for start in range(0, len(text), size):
        writer.write(text[start : start + size])
    asyncio.run(writer.finish("list"))
    assert list(objects.kept.values()) == [b'["' + b"x" * 20 + b"***yy***" + b'"]']


def test_the_store_of_tools_masks_and_passes_on(box: Box) -> None:
    del box
    asyncio.run(use_the_store())


async def use_the_store() -> None:
    store = MaskedResults(ResultStore(MemoryObjectStore()))
    kept = await store.put("e1", f'"<{SECRET}>"'.encode())
    assert await store.fetch(kept) == f"<{MASK}>"
    assert await store.fetch(await store.put("e1", b'"ok"')) == "ok"
    assert b"".join([piece async for piece in store.pieces(kept)]) == f'"<{MASK}>"'.encode()
    writer = store.open("e1")
    writer.write(f'"{SECRET}"'.encode())
    assert await store.fetch(await writer.finish()) == MASK
    await store.open("e1").discard()
    assert await store.remove("e1") == 3


def test_without_secrets_the_store_is_the_store_itself() -> None:
    store: Any = object()
    assert masked_results(store) is store


@pytest.mark.rule("KEY-3")
@pytest.mark.parametrize("kind", REPORTED, ids=lambda kind: kind.__name__)
def test_no_field_of_a_workers_event_tells_a_secret(kind: type[e.Event], box: Box) -> None:
    """Every field that can hold what users wrote, of every event that a worker may send."""
    given: dict[str, Any] = {
        field: {"a": SECRET} if holds.moves in ("each", "error") else f"is {SECRET}"
        for field, holds in HELD[kind].items()
    }
    needed = {field.name: 0 for field in structs.fields(kind) if field.required}
    (told,) = Secrecy(box, {}).report([kind(**{**needed, **given})])
    assert not KNOWN.found_in(encode_events([told]))
