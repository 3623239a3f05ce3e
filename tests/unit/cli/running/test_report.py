"""The object of `--json`: references become values where they are small enough."""

import asyncio
from typing import Any

import pytest

from noetl.adapters.memory.object_store import MemoryObjectStore
from noetl.control.execution import Execution, Tally
from noetl.messages.codec import encode, reference_to
from noetl.messages.reference import Reference
from noetl.ports.result_store import ResultStore
from noetl.server.report import LARGEST, report_of, with_values


@pytest.fixture
def store() -> ResultStore:
    return ResultStore(MemoryObjectStore())


def kept(store: ResultStore, value: Any) -> Reference:
    return asyncio.run(store.put("x1", encode(value)))


@pytest.mark.parametrize("value", [1, "text", [1, 2], {"a": None}, ""])
def test_what_is_small_is_shown(store: ResultStore, value: Any) -> None:
    assert asyncio.run(with_values({"a": [kept(store, value)]}, store)) == {"a": [value]}


def test_what_is_large_stays_a_reference(store: ResultStore) -> None:
    reference = kept(store, "x" * LARGEST)
    assert asyncio.run(with_values(reference, store)) == {"$ref": reference.fields()}


def test_what_is_lost_stays_a_reference(store: ResultStore) -> None:
    lost = Reference("memory", "x1/gone", 10, "gone")
    assert asyncio.run(with_values([lost], store)) == [{"$ref": lost.fields()}]


@pytest.mark.parametrize(("size", "whole"), [(10, True), (LARGEST, False)])
def test_a_list_in_chunks_is_joined(store: ResultStore, size: int, whole: bool) -> None:
    parts = [["x" * size], [2]]
    chunks = [kept(store, part) for part in parts]
    body = encode({"chunks": [chunk.fields() for chunk in chunks]})
    asyncio.run(store.put("x1", body))
    manifest = reference_to("memory", "x1", body, "chunks[2]")
    shown = asyncio.run(with_values(manifest, store))
    assert shown == (["x" * size, 2] if whole else {"$ref": manifest.fields()})


def test_the_object(store: ResultStore) -> None:
    execution = Execution(
        execution_id="x1",
        status="failed",
        ctx={"a": kept(store, [1])},
        leaves={"end": 7},
        error={"kind": "http"},
        tallies={"end": Tally(runs=2, failed=1, status="failed")},
    )
    report = asyncio.run(report_of(execution, store, 12))
    assert (report.execution_id, report.status, report.duration_ms) == ("x1", "failed", 12)
    assert (report.ctx, report.result, report.error) == ({"a": [1]}, 7, {"kind": "http"})
    assert report.steps == [{"step": "end", "runs": 2, "failed": 1, "status": "failed"}]
