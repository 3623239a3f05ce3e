"""The tests of a playbook, run for a browser: verdicts, refusals, and what their process sees."""

import asyncio
import sys
from pathlib import Path

import pytest
from tests.unit.api.test_editing import asked

from noetl.errors import ServerRefused
from noetl.node.testing import runs
from noetl.node.testing.runs import PlaybookTests
from noetl.settings import Settings

TEXT = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: weather, path: tests/weather}
keychain: [{name: weather, kind: bearer, provider: environment, key: WEATHER_TOKEN}]
workload: {city: Vienna}
workflow:
  - step: fetch
    tool:
      - get:
          kind: http
          auth: weather
          url: "https://example.com/{{ workload.city }}"
      - tell: {kind: transform, jq: .degrees}
    next: {arcs: [{step: cold, when: "{{ event.result < 10 }}"}, {step: warm}]}
  - step: cold
    tool: [{stay: {kind: noop}}]
  - step: warm
    tool: [{leave: {kind: noop}}]
"""
TESTS = """
playbook: weather.yaml
tests:
  - name: a warm day
    outcomes: {get: {ok: {degrees: 25}}}
    expect: {steps: {warm: 1, cold: 0}}
  - name: wrong on purpose
    outcomes: {get: {ok: {degrees: 25}}}
    expect: {steps: {cold: 1}, result: "<b>"}
  - name: nothing prepared
"""
ENDLESS = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: endless, path: tests/endless}
workflow:
  - step: start
    tool: [{a: {kind: noop}}]
    next: {arcs: [{step: start}]}
"""
TEST = "/api/editing/test"
ONE = "playbook: a.yaml\ntests: [{name: one}]\n"


async def test_each_test_has_its_verdict(tmp_path: Path) -> None:
    async with asked(tmp_path) as api:
        told = await api.post(TEST, {"text": TEXT, "tests": TESTS})
    assert (told["passed"], told["failed"]) == (1, 2)
    warm, wrong, nothing = told["tests"]
    assert (warm["name"], warm["ok"], warm["problems"]) == ("a warm day", True, [])
    assert "steps.cold: expected 1 runs, got 0" in wrong["problems"]
    assert wrong["problems"][-1].startswith("result: expected '<b>', got ")
    assert nothing["problems"][0].startswith("call 1 of fetch.get needs an outcome")
    assert "https://example.com/Vienna" in nothing["problems"][0]


async def test_a_playbook_or_tests_that_cannot_be_read_are_refused_with_the_place(
    tmp_path: Path,
) -> None:
    wrong = TEXT.replace("kind: noop", "kind: nop")
    async with asked(tmp_path) as api:
        code, told = await api.ask("POST", TEST, json={"text": wrong, "tests": TESTS})
        assert code == 422
        assert told["error"]["code"] == "playbook_rejected"
        assert len(told["error"]["findings"]) == 2
        misspelt = TESTS.replace("expect:", "expects:")
        code, told = await api.ask("POST", TEST, json={"text": TEXT, "tests": misspelt})
        assert (code, told["error"]["code"]) == (422, "tests_unreadable")
        assert "the tests is not a playbook test file: " in told["error"]["message"]
        assert "did you mean 'expect'?" in told["error"]["message"]


async def test_tests_without_end_are_ended_and_few_run_at_once(tmp_path: Path) -> None:
    bounds = Settings(home=tmp_path).bounds
    short = PlaybookTests(bounds, seconds=1)
    with pytest.raises(ServerRefused, match="they take longer than 1 s; run them with `noetl"):
        await short.run(ENDLESS, ONE)

    long = PlaybookTests(bounds)
    under_way = [asyncio.create_task(long.run(ENDLESS, ONE)) for _ in range(runs.AT_ONCE)]
    await asyncio.sleep(0)
    with pytest.raises(ServerRefused, match="2 runs of tests are under way"):
        await long.run(TEXT, TESTS)
    for one in under_way:
        one.cancel()
    await asyncio.wait(under_way)
    assert all(one.cancelled() for one in under_way)
    assert [one.ok for one in await long.run(TEXT, TESTS)] == [True, False, False]


LOOKS = """
import json, os, sys
try:
    seen = os.listdir(sys.argv[1])
except OSError:
    seen = []
parent = open(f"/proc/{os.getppid()}/environ").read()
told = {"name": "x", "ok": True, "problems": [*os.environ, *seen, parent], "duration_ms": 0}
print(json.dumps({"tests": [told]}))
"""


async def test_its_process_has_nothing_of_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "token").write_text("not for others")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret of the server")
    looking = (sys.executable, "-c", LOOKS, str(home))
    [seen] = await PlaybookTests(Settings(home=home).bounds, program=looking).run(TEXT, TESTS)
    assert sorted(seen.problems[:4]) == ["HOME", "LANG", "PATH", "TMPDIR"]
    assert "token" not in seen.problems
    assert "secret" not in "".join(seen.problems)
