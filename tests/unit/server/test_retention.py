"""What retention removes, and what it leaves."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from noetl.errors import BodyLost, LogDamaged, ResultsUnavailable, SettingRefused
from noetl.messages.codec import reference_to
from noetl.messages.reference import Reference
from noetl.node.local import LocalNode
from noetl.server.policies import RetentionPolicy
from noetl.server.retention import Retention, sweep
from noetl.settings import Settings, read_settings

LARGE = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: large, path: tests/large}
executor: {spec: {policy: {limits: {max_payload_bytes: 200}}}}
workflow:
  - step: start
    tool:
      - make:
          kind: noop
          spec:
            policy:
              rules: [{else: {then: {do: continue, set_ctx: {text: "{{ 'x' * 400 }}"}}}}]
"""


async def ran(local: LocalNode) -> Reference:
    """The reference that a finished execution left in its ctx."""
    active = await local.run_text(LARGE, folder=None, payload={})
    await active.finished
    found = active.execution.ctx["text"]
    assert isinstance(found, Reference)
    return found


@pytest.mark.rule("RES-4")
async def test_a_sweep_removes_what_the_log_does_not_refer_to(tmp_path: Path) -> None:
    local = await LocalNode.open(Settings(home=tmp_path))
    reference = await ran(local)
    execution_id = reference.key.partition("/")[0]
    stray = await local.results.put(execution_id, b'"left by a crash"')
    assert await sweep(local.storage.log, local.results, execution_id) == 1
    assert await local.results.fetch(reference) == "x" * 400
    with pytest.raises(BodyLost, match=stray.checksum):
        await local.results.fetch(stray)
    await local.close()


@pytest.mark.rule("KEEP-1")
@pytest.mark.parametrize("fault", [TypeError("odd"), BodyLost("gone"), LogDamaged("torn")])
async def test_one_that_cannot_be_archived_keeps_no_other(tmp_path: Path, fault: Exception) -> None:
    """Else a worker that lies about one event ends retention for everybody."""
    local = await LocalNode.open(Settings(home=tmp_path))
    ids = [(await ran(local)).key.partition("/")[0] for _ in range(3)]

    async def archive(_: RetentionPolicy, family: Sequence[str]) -> None:
        if ids[0] in family:
            raise fault

    retention = Retention(local.storage, local.results, archive)
    gone = await retention.remove([RetentionPolicy(older_than=0, archive="results")])
    assert sorted(gone) == sorted(ids[1:])
    assert [*retention.kept] == ids[:1]
    await local.close()


async def test_an_archive_that_is_away_is_waited_for(tmp_path: Path) -> None:
    local = await LocalNode.open(Settings(home=tmp_path))
    await ran(local)

    async def archive(*_: object) -> None:
        raise ResultsUnavailable("it does not answer")

    retention = Retention(local.storage, local.results, archive)
    with pytest.raises(ResultsUnavailable):
        await retention.remove([RetentionPolicy(older_than=0, archive="results")])
    assert retention.kept == {}
    await local.close()


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("NOETL_SLOTS", "many", "a whole number >= 1, got 'many'"),
        ("NOETL_SLOTS", "0", "a whole number >= 1, got '0'"),
        ("NOETL_RETENTION_DAYS", "-1", "a number of days >= 0, got '-1'"),
        ("NOETL_RETENTION", "soon", "policies such as '30d .*365d', got 'soon'"),
        ("NOETL_RUN_AHEAD", "maybe", "1 or 0, got 'maybe'"),
    ],
)
def test_a_setting_that_cannot_be_is_refused(name: str, text: str, expected: str) -> None:
    with pytest.raises(SettingRefused, match=f"^{name} must be {expected}$"):
        read_settings({name: text})


def test_settings_come_from_the_environment() -> None:
    found = read_settings({"NOETL_HOME": "somewhere", "NOETL_SLOTS": "7", "NOETL_RUN_AHEAD": "no"})
    assert (found.home, found.slots, found.run_ahead) == (Path("somewhere"), 7, False)
    assert found.retention_days is None


def test_a_reference_is_a_function_of_its_body() -> None:
    first, second = (reference_to("files", "e", b"[1]", "list[1]") for _ in range(2))
    assert first == second
    assert first.key == f"e/{first.checksum}"
