"""What to do about an error, by its kind and by what it says: the last line of `noetl explain`."""

import re
from typing import Any, Final, NamedTuple


class Advice(NamedTuple):
    """What to do about errors of one kind whose text matches; the first that fits is given."""

    kind: str
    says: str
    """A pattern for the message; empty: any. `do` may name its groups."""
    do: str


_LOGS: Final = "correct it; all that it printed: noetl logs {id} --step {place}"
_REGISTER: Final = "register it with `noetl credential add`, or correct the name that `auth` gives"
_HOST: Final = "correct the host: in the `url`, or in the credential that `auth` names"
_OPERANDS: Final = (
    r"unsupported operand|can only concatenate|not supported between|bad operand type"
    r"|must be str|has no len|not iterable|not callable|doesn't define|not all arguments converted"
)

ADVICE: Final = (
    Advice(
        "template",
        _OPERANDS,
        "the values have other types than the template expects: convert "
        "one (`| int`, `| float`, `| string`, `~` joins text), or look at what they are",
    ),
    Advice("template", "division by zero", "guard the division: `a / b if b else 0`"),
    Advice(
        "template",
        "would exceed|too deeply|takes too long",
        "make less of it in a template; a python task has more room",
    ),
    Advice("template", "did you mean", "correct the name in the template"),
    Advice("template", "undefined", "define the name, or cover it with `| default(...)`"),
    Advice("template", "", "correct the template"),
    Advice("input", "%%", "write the percent sign twice, %%, wherever there are `params`"),
    Advice("input", "no credential '", _REGISTER),
    Advice(
        "input",
        "leaves the playbook's folder|is not below",
        "put the file below the folder that the message names",
    ),
    Advice("input", "", "correct the input; docs/reference/kinds.md lists what each kind takes"),
    Advice("auth", "no credential '", _REGISTER),
    Advice(
        "auth",
        "",
        "check the fields of the credential that `auth` names; to replace it: noetl credential add",
    ),
    Advice(
        "connection",
        "host name that was not found|name or service not known|resolve host|"
        "nodename nor servname|temporary failure in name",
        _HOST,
    ),
    Advice(
        "connection",
        "certificate|tls|ssl",
        "check the certificate of the server, or the CA that the credential names",
    ),
    Advice(
        "connection",
        "refused|no connection to|could not (?:connect|be opened)",
        "nothing answers there: "
        "start the server, or correct host and port; if it is only away at times, add a rule "
        "with `do: retry`",
    ),
    Advice(
        "connection", "", "check that the server can be reached, or add a rule with `do: retry`"
    ),
    Advice(
        "timeout",
        "connect",
        "nothing answered in time: check host, port and firewall, or add a rule with `do: retry`",
    ),
    Advice("timeout", "", "raise the `timeout` of the spec, or add a rule with `do: retry`"),
    Advice("http", r"\b40[13]\b", "check the credential that `auth` names, and what it may do"),
    Advice("http", r"\b404\b", "correct the `url`"),
    Advice(
        "http", "", "look at outcome.http.status, and add a rule for it (`do: retry`, `continue`)"
    ),
    Advice("decode", "", "the body does not match its content type: check the server"),
    Advice("postgres", "3D000", "create the database, or correct `database` of the credential"),
    Advice("postgres", "42P01", "create the table, or correct its name or schema"),
    Advice("postgres", "42703", "correct the name of the column"),
    Advice("postgres", "42501", "grant the user of the credential what it needs"),
    Advice(
        "postgres",
        "says 23",
        "the rows break a constraint of the table: correct them, or add "
        "ON CONFLICT to the statement",
    ),
    Advice("postgres", "", "correct the statement; outcome.pg.code names the SQLSTATE"),
    Advice("duckdb", "Catalog Error.*does not exist", "create the table, or correct its name"),
    Advice(
        "duckdb",
        "set lock on file|Conflicting lock",
        "another run has the file open: add a rule with `do: retry`, or let one run at a "
        "time (`at_once: 1` below executor.spec.limit)",
    ),
    Advice("duckdb", "", "correct the statement"),
    Advice("snowflake", "", "correct the statement; outcome.snowflake.code names the error"),
    Advice(
        "python",
        "ModuleNotFoundError",
        "add the package to `libs` of the task, or correct its name",
    ),
    Advice("python", "NameError", "pass the value: code sees only its `args`"),
    Advice("python", "", _LOGS),
    Advice(
        "exit",
        "code 127",
        "the command was not found: install it on the worker, or correct its name",
    ),
    Advice("exit", "code 126", "the file cannot be executed: chmod +x, or name an `interpreter`"),
    Advice("exit", "", _LOGS),
    Advice(
        "playbook",
        r"child execution (?P<child>\S+) ",
        "see why the child ended: noetl explain {child}",
    ),
    Advice(
        "playbook",
        r"'(?P<file>[^']+\.ya?ml)': the playbook has \d+ errors?",
        "correct the child; all of its errors: noetl validate {file}",
    ),
    Advice("playbook", "", "correct the child that the message names"),
    Advice(
        "container",
        "",
        "correct the image or the command; all that it printed: noetl logs {id} --step {place}",
    ),
    Advice("object", "", "check bucket and key, and what the credential may do there"),
    Advice("quantum", "", "correct the circuit or the backend, as the message says"),
    Advice(
        "policy",
        "",
        "a rule with `do: fail` ended it on purpose: the message says why, and the line "
        "above which rule it was",
    ),
    Advice(
        "loop",
        "got dict",
        "loop over its pairs, each [key, value]: add `| dictsort` to the expression",
    ),
    Advice("loop", "got str", "make a list of the text: add `.split(',')` to the expression"),
    Advice("loop", "got int", "to count, make a list of it: `range(n) | list`"),
    Advice("loop", "", "check the value of `loop.in`, and what its iterations do"),
    Advice("limit", "", "end the cycle, or raise the limit that the message names"),
    Advice(
        "ctx_conflict",
        "",
        "declare a reducer for the key (loop.spec.policy.reduce), or use set_iter",
    ),
    Advice("retry_exhausted", "", "fix the cause, or allow more `attempts`"),
    Advice("result", "", "return only what JSON can hold"),
    Advice("not_found", "needs an extra", "run the command that the message names, on the worker"),
    Advice("not_found", "", "correct the name"),
    Advice("cancelled", "", "start it again: noetl run"),
    Advice(
        "worker_lost", "", "see in the logs of those workers what ended them, then run it again"
    ),
    Advice("internal", "", "this is a bug in noetl: please report it"),
)
OTHERWISE: Final = "see every event: noetl events {id}"


def advice_for(error: dict[str, Any], place: str, execution_id: str) -> str:
    """The remedy for an error; of retries that were used up, that for the last one."""
    cause = error.get("cause")
    if error.get("kind") == "retry_exhausted" and isinstance(cause, dict):
        return f"{advice_for(cause, place, execution_id)}; or allow more `attempts`"
    kind, said = str(error.get("kind")), str(error.get("message", ""))
    for one in ADVICE:
        found = re.search(one.says, said, re.IGNORECASE) if one.kind == kind else None
        if found is not None:
            return one.do.format(id=execution_id, place=place, **found.groupdict())
    return OTHERWISE.format(id=execution_id)
