"""What `noetl explain` says to do: by what went wrong, not only by its kind."""

import pytest

from noetl.cli.advice import ADVICE, advice_for
from noetl.errors import TemplateFailed
from noetl.expression.template import compile_value
from noetl.messages.outcome import ERROR_KINDS
from noetl.pipeline.policy import template_error


def told(kind: str, message: str) -> str:
    return advice_for({"kind": kind, "message": message}, "load", "e1")


@pytest.mark.parametrize(
    ("text", "do"),
    [
        ("{{ 'a' + 1 }}", "convert one"),
        ("{{ 1 + 'a' }}", "convert one"),
        ("{{ [1] + 2 }}", "convert one"),
        ("{{ none + 1 }}", "convert one"),
        ("{{ 'x' < 1 }}", "convert one"),
        ("{{ -'a' }}", "convert one"),
        ("{{ 5 | length }}", "convert one"),
        ("{{ [1, 'a'] | sort }}", "convert one"),
        ("{{ 1 / 0 }}", "guard the division"),
        ("{{ range(100000000) }}", "make less of it"),
        ("{{ workload.nmae }}", "correct the name"),
        ("{{ workload.other }}", "define the name"),
    ],
)
def test_templates_that_fail(text: str, do: str) -> None:
    with pytest.raises(TemplateFailed) as failed:
        compile_value(text)({"workload": {"name": "x"}})
    error = template_error(failed.value, "input")
    assert do in advice_for(error, "load", "e1")


@pytest.mark.parametrize(
    ("kind", "message", "do"),
    [
        ("postgres", 'PostgreSQL says 3D000: database "x" does not exist', "create the database"),
        ("postgres", 'PostgreSQL says 42P01: relation "x" does not exist', "create the table"),
        ("postgres", "PostgreSQL says 23505: duplicate key", "ON CONFLICT"),
        ("postgres", "PostgreSQL says 42601: syntax error", "correct the statement"),
        (
            "connection",
            "no connection to PostgreSQL: connection to server at 127.0.0.1, port 1 failed: "
            "Connection refused",
            "start the server, or correct host and port",
        ),
        (
            "connection",
            "no connection to PostgreSQL: failed to resolve host 'nowhere': Name or service not "
            "known",
            "correct the host",
        ),
        (
            "connection",
            "no connection to PostgreSQL: certificate verify failed",
            "check the certificate",
        ),
        ("connection", "GET http://x lost its connection", "can be reached"),
        ("timeout", "no connection to PostgreSQL in time (connect timeout): x", "firewall"),
        ("timeout", "the task took longer than 5 s", "raise the `timeout`"),
        ("auth", "no credential 'pg': add it", "noetl credential add"),
        ("http", "GET http://x answered 404", "correct the `url`"),
        ("http", "GET http://x answered 401", "what it may do"),
        ("input", "it cannot be sent: beside params a percent sign is written %%", "twice, %%"),
        ("python", "ModuleNotFoundError: No module named 'pandas'", "`libs`"),
        ("python", "ValueError: x", "noetl logs e1 --step load"),
        ("exit", "exit code 127", "was not found"),
        ("exit", "exit code 1", "noetl logs e1 --step load"),
        ("of_a_plugin", "anything", "noetl events e1"),
        ("input", "postgres needs 'auth': no credential 'pg'", "noetl credential add"),
        ("input", "path '/x' leaves the playbook's folder /p", "below the folder"),
        ("policy", "too many failed", "on purpose"),
        ("loop", "`loop.in` must evaluate to a list, got dict: {}", "dictsort"),
        ("loop", "`loop.in` must evaluate to a list, got int: 5", "range(n)"),
        ("loop", "`loop.in` must evaluate to a list, got str: 'a,b'", ".split(',')"),
        ("playbook", "child execution e1-4.1-1 failed: x", "noetl explain e1-4.1-1"),
        ("playbook", "'kid.yaml': the playbook has 2 errors; line 6: x", "noetl validate kid.yaml"),
        ("not_found", "'jq' needs an extra: install it with pip", "run the command"),
        ("duckdb", "IO Error: Could not set lock on file 'x'", "at_once: 1"),
    ],
)
def test_causes_and_actions(kind: str, message: str, do: str) -> None:
    assert do in told(kind, message)


def test_retries_that_are_used_up_are_explained_by_their_cause() -> None:
    cause = {"kind": "http", "message": "GET http://x answered 404"}
    error = {"kind": "retry_exhausted", "message": "gave up", "cause": cause}
    assert advice_for(error, "load", "e1") == "correct the `url`; or allow more `attempts`"


def test_every_kind_has_a_last_word() -> None:
    assert set(ERROR_KINDS) <= {one.kind for one in ADVICE if not one.says}
