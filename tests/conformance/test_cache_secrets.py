"""CACHE-1: secrets are never cached, wherever they come from."""

import asyncio
from pathlib import Path

import pytest
from tests.support.leaks import SECRET, finds, run

from noetl.adapters.sqlite.storage import open_storage
from noetl.messages import events as e
from noetl.ports.cache import CacheEntry, CacheFilter

PLANTED = """
keychain:
  - {name: api, kind: bearer, provider: environment, key: PLANTED}
workflow:
  - step: start
    tool:
      - get: {kind: secrets, provider: environment, name: PLANTED}
      - keep:
          kind: noop
          spec: {policy: {rules: [{else: {then: {set_iter: {word: "{{ _prev }}"}}}}]}}
      - told:
          kind: python
          args: {s: "{{ iter.word }}"}
          code: "result = {'inside': ['it is ' + s]}"
          spec: {cache: {key: told, ttl: 60}}
      - passed:
          kind: transform
          value: "{{ iter.word }}"
          spec: {cache: {key: passed, ttl: 60}}
      - lent:
          kind: workbook
          name: fetch
          spec: {cache: {key: lent, ttl: 60}}
      - large:
          kind: python
          args: {s: "{{ iter.word }}"}
          code: "result = {'rows': ['x' * 100] * 3000, 'last': s}"
          spec: {cache: {key: large, ttl: 60}}
      - keyed:
          kind: python
          args: {s: "{{ iter.word }}"}
          code: "result = len(s)"
          spec: {cache: {key: "{{ iter.word }}", ttl: 60}}
      - hashed:
          kind: python
          args: {s: "{{ iter.word }}"}
          code: "result = len(s)"
          spec: {cache: {key: "{{ 'x' * 600 ~ iter.word }}", ttl: 60}}
      - plain:
          kind: python
          args: {s: "{{ iter.word }}"}
          code: "result = len(s)"
          spec: {cache: {key: plain, ttl: 60}}
workbook:
  tasks:
    fetch: {kind: secrets, provider: environment, name: PLANTED}
"""


async def kept_in(home: Path) -> list[CacheEntry]:
    storage = await open_storage(home)
    try:
        return list(await storage.cache.page(CacheFilter(), now=0))
    finally:
        await storage.close()


@pytest.mark.rule("CACHE-1", "KEY-2", "KEY-3")
def test_a_secret_is_neither_kept_nor_a_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLANTED", SECRET)
    for _ in range(2):
        ran = run(PLANTED, tmp_path)
        assert ran.status == "completed", ran.error
    kept = asyncio.run(kept_in(tmp_path))
    assert [(one.task, one.key) for one in kept] == [("start.plain", "plain")]
    assert [one.task for one in ran.of(e.TaskCached)] == ["plain"]
    assert finds(SECRET, tmp_path) == []
