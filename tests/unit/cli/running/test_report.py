"""The object of `--json`: references become values where they are small enough."""

from typing import Any

import pytest

from noetl.adapters.memory.result_store import MemoryResultStore
from noetl.control.execution import Execution, Tally
from noetl.messages.codec import encode, reference_to
from noetl.messages.reference import Reference
from noetl.server.report import LARGEST, report_of, with_values


@pytest.fixture
def store() -> MemoryResultStore:
    return MemoryResultStore()


def kept(store: MemoryResultStore, value: Any) -> Reference:
    return store.put_now("x1", encode(value))


@pytest.mark.parametrize("value", [1, "text", [1, 2], {"a": None}, ""])
def test_what_is_small_is_shown(store: MemoryResultStore, value: Any) -> None:
    assert with_values({"a": [kept(store, value)]}, store) == {"a": [value]}


def test_what_is_large_stays_a_reference(store: MemoryResultStore) -> None:
    reference = kept(store, "x" * LARGEST)
    assert with_values(reference, store) == {"$ref": reference.fields()}


def test_what_is_lost_stays_a_reference(store: MemoryResultStore) -> None:
    lost = Reference("memory", "x1/gone", 10, "gone")
    assert with_values([lost], store) == [{"$ref": lost.fields()}]


@pytest.mark.parametrize(("size", "whole"), [(10, True), (LARGEST, False)])
def test_a_list_in_chunks_is_joined(store: MemoryResultStore, size: int, whole: bool) -> None:
    parts = [["x" * size], [2]]
    chunks = [kept(store, part) for part in parts]
    body = encode({"chunks": [chunk.fields() for chunk in chunks]})
    store.put_now("x1", body)
    manifest = reference_to("memory", "x1", body, "chunks[2]")
    shown = with_values(manifest, store)
    assert shown == (["x" * size, 2] if whole else {"$ref": manifest.fields()})


def test_the_object(store: MemoryResultStore) -> None:
    execution = Execution(
        execution_id="x1",
        status="failed",
        ctx={"a": kept(store, [1])},
        leaves={"end": 7},
        error={"kind": "http"},
        tallies={"end": Tally(runs=2, failed=1, status="failed")},
    )
    report = report_of(execution, store, 12)
    assert (report.execution_id, report.status, report.duration_ms) == ("x1", "failed", 12)
    assert (report.ctx, report.result, report.error) == ({"a": [1]}, 7, {"kind": "http"})
    assert report.steps == [{"step": "end", "runs": 2, "failed": 1, "status": "failed"}]
