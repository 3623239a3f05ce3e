"""What to do about an error, by its kind (OUT-4)."""

from typing import Any

ADVICE: dict[str, str] = {
    "template": "define the name, or cover it with `| default(...)`",
    "input": "correct the input; docs/reference/kinds.md lists what each kind takes",
    "auth": "check the credential that `auth` names in `keychain`",
    "connection": "check that the other side can be reached, or add a rule with `do: retry`",
    "timeout": "raise the `timeout` of the spec, or add a rule with `do: retry`",
    "http": "look at outcome.http.status, and add a rule for it (`do: retry`, `continue`)",
    "decode": "the body is not what its content type says: check the other side",
    "postgres": "correct the statement; outcome.pg.code names the SQLSTATE",
    "duckdb": "correct the statement",
    "python": "see what it printed: noetl logs {id} --step {step}",
    "exit": "see what it printed: noetl logs {id} --step {step}",
    "playbook": "explain the child: its id is in the message",
    "policy": "the tool succeeded and a rule ordered `fail`: check that rule's `when`",
    "loop": "check what `loop.in` comes to, and what its iterations do",
    "limit": "end the cycle, or raise the limit that the message names",
    "ctx_conflict": "declare a reducer for the key (loop.spec.policy.reduce), or use set_iter",
    "retry_exhausted": "mend the cause, or allow more `attempts`",
    "result": "return only what JSON can hold",
    "not_found": "correct the name",
    "cancelled": "start it again: noetl run",
    "worker_lost": "see in the logs of those workers what ended them, then run it again",
    "internal": "this is a fault of noetl: please report it",
}
OTHERWISE = "see every event: noetl events {id}"


def advice_for(error: dict[str, Any], step: str, execution_id: str) -> str:
    """The remedy for the innermost error."""
    advice = ADVICE.get(str(error.get("kind")), OTHERWISE)
    return advice.format(id=execution_id, step=step)
