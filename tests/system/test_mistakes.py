"""Mistakes that newcomers make: each is told with what was meant and what to do (CLI-1)."""

from pathlib import Path

import pytest
from tests.system.newcomer import Newcomer

PLAYBOOK = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: take, path: tests/take }
workload: { order: 1 }
workflow:
  - step: start
    tool: [ { work: { kind: shell, command: "exit 3" } } ]
"""
HOOK = """\
apiVersion: noetl.io/v2
kind: Trigger
metadata: { name: hook, path: tests/hook }
spec: { playbook: tests/take, on: { webhook: { scheme: bearer, credential: shop-hook } } }
"""
NIGHTLY = """\
apiVersion: noetl.io/v2
kind: Trigger
metadata: { name: nightly, path: tests/nightly }
spec: { playbook: tests/take, on: { schedule: { cron: "0 3 1 1 *", timezone: Asia/Tokyo } } }
"""


@pytest.fixture
def newcomer(tmp_path: Path) -> Newcomer:
    found = Newcomer(tmp_path)
    assert found.noetl("register", found.file(PLAYBOOK)).code == 0
    return found


@pytest.mark.rule("START-4")
def test_a_webhook_without_its_credential_says_so(newcomer: Newcomer) -> None:
    said = "there is no credential 'shop-hook', so every call is refused; add it: noetl credential"
    assert said in newcomer.noetl("register", newcomer.file(HOOK)).err
    assert said in newcomer.noetl("trigger", "show", "tests/hook").out
    newcomer.noetl("credential", "add", "shop-hook", "--kind", "generic", "--stdin", stdin=b"hush")
    assert "problem" not in newcomer.noetl("trigger", "show", "tests/hook").out


@pytest.mark.rule("START-3")
def test_a_resumed_schedule_names_its_next_time_in_its_own_zone(newcomer: Newcomer) -> None:
    newcomer.noetl("register", newcomer.file(NIGHTLY))
    newcomer.noetl("trigger", "pause", "tests/nightly")
    told = newcomer.noetl("trigger", "resume", "tests/nightly").out
    assert "-12-31T18:00:00.000Z (" in told
    assert "-01-01 03:00:00 Asia/Tokyo)" in told


@pytest.mark.rule("START-1")
def test_a_trigger_shows_when_and_with_what_it_starts(newcomer: Newcomer) -> None:
    words = ("--playbook", "tests/take", "--cron", "0 3 * * *", "--catch-up", "last")
    newcomer.noetl("schedule", "add", "tests/night", *words, "--set", "order=7")
    shown = newcomer.noetl("trigger", "show", "tests/night")
    assert "  on         cron: 0 3 * * *, timezone: UTC, catch_up: last, limit: " in shown.out
    assert '  payload    {"order":7}' in shown.out
    told = newcomer.noetl("trigger", "show", "tests/night", "--json").objects()[0]
    assert (told["on"]["cron"], told["on"]["catch_up"]) == ("0 3 * * *", "last")
    newcomer.noetl("register", newcomer.file(HOOK))
    shown = newcomer.noetl("trigger", "show", "tests/hook")
    assert "  on         scheme: bearer, credential: shop-hook, " in shown.out


@pytest.mark.rule("START-1")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("tests/nightli",), "no trigger 'tests/nightli'; did you mean 'tests/nightly'?"),
        (("tests/nightly", "--to", "2020-01-01"), "it begins at 2026-01-01, after its end at"),
        (("tests/nightly", "--to", "1.1.27"), "write it like 2026-03-01 or 2026-03-01T06:00:00Z"),
    ],
)
def test_a_backfill_of_nothing_is_refused(
    words: tuple[str, ...], said: str, newcomer: Newcomer
) -> None:
    newcomer.noetl("register", newcomer.file(NIGHTLY))
    to = () if "--to" in words else ("--to", "2026-02-01")
    answer = newcomer.noetl(
        "schedule", "backfill", *words, *to, "--from", "2026-01-01", "--dry-run"
    )
    assert answer.code == 3
    assert said in answer.err


def test_files_and_paths_of_the_catalog_are_told_apart(newcomer: Newcomer) -> None:
    file = newcomer.file(PLAYBOOK)
    answer = newcomer.noetl("execute", file)
    assert answer.code == 3
    assert f"'{file}' is a file: register it with `noetl register {file}`" in answer.err
    assert "noetl execute tests/take" in newcomer.noetl("run", "tests/take").err
    assert "noetl execute" not in newcomer.noetl("run", "nowhere.yaml").err


@pytest.mark.rule("VAL-7")
def test_a_restart_warns_of_keys_that_nothing_reads(newcomer: Newcomer) -> None:
    newcomer.noetl("execute", "tests/take")
    told = newcomer.noetl("restart", "last", "--set", "ordr=2").err
    assert "warning[undeclared-key]" in told
    assert "did you mean 'order'?" in told


def test_a_list_of_nothing_says_how_to_begin(newcomer: Newcomer) -> None:
    assert "nothing has run there yet; start a playbook" in newcomer.noetl("list").err
    assert newcomer.noetl("list", "--status", "failed").err == "no execution matches\n"


def test_a_kind_of_credential_that_no_tool_knows_is_told(newcomer: Newcomer) -> None:
    answer = newcomer.noetl("credential", "add", "db", "--kind", "postgrs", "--field", "host=h")
    assert answer.code == 0
    assert "no tool knows the kind 'postgrs'; did you mean 'postgres'?" in answer.err
