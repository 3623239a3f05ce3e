"""What commands say to somebody who is new to them: what happened, and what to do next (CLI-1)."""

from pathlib import Path

import pytest
from tests.system.newcomer import Newcomer
from tests.system.running import running

WAITS = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: orders, path: tests/orders }
workflow:
  - step: ask
    loop: { in: "{{ [7, 8] }}", iterator: order, spec: { mode: parallel } }
    tool:
      - question:
          kind: wait
          approval:
            title: "Send {{ iter.order }}?"
            form:
              size: { type: string, choices: [small, large], default: small }
              note: { type: string, required: false }
    next: { arcs: [ { step: pay } ] }
  - step: pay
    tool:
      - money: { kind: wait, signal: paid }
"""
TRIGGER = """\
apiVersion: noetl.io/v2
kind: Trigger
metadata: { name: once, path: tests/once }
spec: { playbook: tests/nowhere, on: { schedule: { at: "2020-01-01T00:00:00Z" } } }
"""


@pytest.fixture
def newcomer(tmp_path: Path) -> Newcomer:
    return Newcomer(tmp_path)


@pytest.mark.rule("WAIT-4", "WAIT-5", "WAIT-7")
def test_what_waits_is_named_as_it_is_answered(newcomer: Newcomer) -> None:
    file = newcomer.file(WAITS)
    with running("run", file, home=newcomer.home) as run:
        run.wait_for("ask:1.question: waits for an answer to 'Send 8?'")
        listed = newcomer.noetl("waiting").out
        assert "--set size=… (one of small, large; small if left out)" in listed
        assert "--set note=… (string; may be left out)" in listed
        assert f"noetl approve {run.execution_id} ask:1" in listed
        wrong = newcomer.noetl("approve", run.execution_id, "ask:1", "--set", "size=larg")
        assert "expected one of: small, large; did you mean 'large'?" in wrong.err
        early = newcomer.noetl("signal", run.execution_id, "payd").out
        assert "nothing waits for it now, so it is kept for the next wait of that name" in early
        for place in ("ask:0", "ask:1"):
            assert newcomer.noetl("approve", run.execution_id, place).code == 0
        run.wait_for("pay.money: waits for signal 'paid'")
        typo = newcomer.noetl("signal", run.execution_id, "payd").out
        assert "awaited now: 'paid' (pay); did you mean 'paid'?" in typo
        assert "'pay' waits for it" in newcomer.noetl("signal", run.execution_id, "paid").out
        assert run.end() == 0


PAID = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: paid, path: tests/paid }
workflow:
  - step: pay
    tool: [ { money: { kind: wait, signal: paid } } ]
"""


@pytest.mark.rule("WAIT-5")
def test_an_answer_to_a_wait_for_a_signal_names_the_signal(newcomer: Newcomer) -> None:
    with running("run", newcomer.file(PAID), home=newcomer.home) as run:
        run.wait_for("pay.money: waits for signal 'paid'")
        wrong = newcomer.noetl("approve", run.execution_id)
        assert wrong.code == 3
        said = "no approval waits; 'pay' waits for signal 'paid': send it with `noetl signal`"
        assert said in wrong.err
        assert newcomer.noetl("signal", run.execution_id, "paid").code == 0
        assert run.end() == 0


@pytest.mark.rule("START-1")
def test_a_trigger_that_would_start_nothing_is_told_at_once(newcomer: Newcomer) -> None:
    made = newcomer.noetl("register", newcomer.file(TRIGGER))
    assert made.code == 0
    assert "it would start nothing now: the catalog has no playbook 'tests/nowhere'" in made.err
    playbook = WAITS.replace("tests/orders", "tests/nowhere")
    assert newcomer.noetl("register", newcomer.file(playbook)).code == 0
    assert (
        "its only time, 2020-01-01T00:00:00Z, has passed"
        in newcomer.noetl("trigger", "show", "tests/once").out
    )


HOOK = """\
apiVersion: noetl.io/v2
kind: Trigger
metadata: { name: hook, path: tests/hook }
spec:
  playbook: tests/orders
  payload: { order: "{{ trigger.data.id }}", shop: "{{ trigger.headers['x-shop'] }}" }
  on: { webhook: { scheme: noetl, credential: shop, max_bytes: 9000000 } }
"""


@pytest.mark.rule("START-1", "START-4")
def test_a_webhook_says_where_it_is_called_and_is_tried_with_headers(newcomer: Newcomer) -> None:
    newcomer.noetl("register", newcomer.file(WAITS))
    wrong = newcomer.noetl("validate", newcomer.file(HOOK))
    assert "'max_bytes' is the number 9000000, expected a whole number from 1 to 8388608" in (
        wrong.out + wrong.err
    )
    made = newcomer.noetl("register", newcomer.file(HOOK.replace("9000000", "9000")))
    assert made.code == 0, made.err
    assert (
        "called by  POST /hooks/tests/hook" in newcomer.noetl("trigger", "show", "tests/hook").out
    )
    test = ("trigger", "test", "tests/hook", "--data", '{"id": 7}')
    lacks = newcomer.noetl(*test)
    assert (lacks.code, lacks.out.endswith("; give it: --header NAME=VALUE\n")) == (1, True)
    tried = newcomer.noetl(*test, "--header", "X-Shop=berlin=mitte")
    assert (tried.code, '"shop":"berlin=mitte"' in tried.out) == (0, True)
    refused = newcomer.noetl(*test, "--header", "x-shop")
    assert "--header takes NAME=VALUE, got 'x-shop'" in refused.err


@pytest.mark.rule("START-3")
def test_times_of_a_schedule_are_told_in_its_own_zone_too(newcomer: Newcomer) -> None:
    newcomer.noetl("register", newcomer.file(WAITS))
    add = ("schedule", "add", "tests/nightly", "--playbook", "tests/orders")
    late = newcomer.noetl(*add, "--at", "2020-06-01T00:00:00", "--timezone", "Asia/Tokyo")
    assert late.code == 3
    assert "has passed (2020-05-31T15:00:00.000Z (2020-06-01 00:00:00 Asia/Tokyo))" in late.err
    made = newcomer.noetl(
        *add, "--cron", "0 3 * * *", "--timezone", "Asia/Tokyo", "--set", "ordr=7"
    )
    assert made.code == 0, made.err
    assert "warning[undeclared-key]: `workload` has no key 'ordr'" in made.err
    for words in (("list",), ("next", "tests/nightly")):
        shown = newcomer.noetl("schedule", *words).out
        assert "T18:00:00.000Z (" in shown
        assert " 03:00:00 Asia/Tokyo)" in shown
    days = ("--from", "2026-03-01", "--to", "2026-03-03")
    filled = newcomer.noetl("schedule", "backfill", "tests/nightly", *days, "--dry-run")
    assert filled.err == (
        "2 planned times from 2026-03-01 to 2026-03-03 (time zone Asia/Tokyo); "
        "nothing was started (--dry-run)\n"
    )


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["waiting"], 0, "nothing waits for a person\n"),
        (["schedule", "list"], 0, "there are no schedules; see: noetl schedule add --help\n"),
        (["trigger", "list"], 0, "there are no triggers; see: noetl schedule add --help\n"),
        (["worker", "stop"], 0, "no workers run on this home\n"),
        (
            ["status"],
            3,
            "error: Missing argument 'ID'.\n  `noetl list` shows the ids of executions, `last` is "
            "the newest; see: noetl status --help\n",
        ),
        (
            ["export"],
            3,
            "error: Missing option '--format'. Choose from: jsonl, parquet, otlp, clickhouse\n"
            "  see: noetl export --help\n",
        ),
        (
            ["schedule", "add", "x", "--playbook", "y"],
            3,
            "error: say when it starts, by one of --cron, --every and --at\n"
            "  see: noetl schedule add --help\n",
        ),
        (
            ["schedule", "add", "x", "--playbook", "y", "--cron", "0 3 * * *", "--every", "5m"],
            3,
            "error: say when it starts, by one of --cron, --every and --at; got --cron and "
            "--every\n  see: noetl schedule add --help\n",
        ),
        (
            ["list", "--server", "http://127.0.0.1:1"],
            3,
            "error: no server answers at http://127.0.0.1:1 (connection refused); start one with "
            "`noetl server start`, or name another with --server\n",
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_first_words_on_an_empty_home(
    words: list[str], code: int, said: str, newcomer: Newcomer
) -> None:
    answer = newcomer.noetl(*words)
    assert (answer.code, answer.out + answer.err) == (code, said)


def test_logs_of_a_step_that_has_not_run_say_so(newcomer: Newcomer) -> None:
    file = newcomer.file(WAITS.replace("kind: wait, signal: paid", "kind: noop"))
    file.write_text(file.read_text().replace("[7, 8]", "[]"))
    assert newcomer.noetl("run", file).code == 0
    assert newcomer.noetl("logs", "last").err == "nothing was printed\n"
    assert (
        "no step 'psy' has run in it; those that have: ask, pay"
        in newcomer.noetl("logs", "last", "--step", "psy").err
    )


@pytest.mark.rule("START-1")
@pytest.mark.parametrize("noun", ["trigger", "schedule"])
def test_triggers_and_schedules_take_the_same_orders(noun: str, newcomer: Newcomer) -> None:
    newcomer.noetl("register", newcomer.file(TRIGGER.replace("2020", "2999")))
    said = [newcomer.noetl(noun, word, "tests/once").out for word in ("pause", "resume", "remove")]
    assert said == [
        f"tests/once: paused; start again with: noetl {noun} resume tests/once\n",
        "tests/once: resumed; next: 2999-01-01T00:00:00.000Z\n",
        "tests/once: removed; `noetl catalog tests/once` has its text\n",
    ]
    assert "no trigger 'tests/once'" in newcomer.noetl(noun, "pause", "tests/once").err
