"""KEY-2: a planted secret is searched for everywhere, and found nowhere."""

import base64
import json
import os
import re
import sqlite3
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.support.http_server import HttpServer
from tests.support.leaks import HEAD, SECRET, finds, register, run
from tests.support.postgres import PASSWORD, Database
from tests.support.processes import ran
from tests.system.program import Answer, noetl


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("PLANTED", SECRET)
    return SECRET


def told(command: str, name: str, environment: dict[str, str], *more: str) -> Answer:
    """What a command says, the tracebacks of tasks included."""
    code, out, err = ran([command, name, *more], b"", {**os.environ, **environment})
    return Answer(code, out.decode(), err.decode())


EVERYWHERE = """
workload: {{url: "{url}"}}
keychain:
  - {{name: api, kind: bearer, provider: environment, key: PLANTED}}
  - {{name: login, kind: basic, provider: environment, key: LOGIN}}
executor: {{spec: {{policy: {{limits: {{max_payload_bytes: 4000}}}}}}}}
workflow:
  - step: start
    tool:
      - get: {{kind: secrets, provider: environment, name: PLANTED}}
      - keep:
          kind: noop
          spec:
            policy:
              rules:
                - else:
                    then:
                      do: continue
                      set_ctx: {{auth: "Bearer {{{{ _prev }}}}", whole: "{{{{ _prev }}}}"}}
                      set_iter: {{again: "{{{{ _prev }}}}"}}
                      set_prev: {{x: "{{{{ _prev }}}}"}}
      - echo: {{kind: http, url: "{{{{ workload.url }}}}/echo", method: POST, auth: api,
                body: {{s: "{{{{ ctx.whole }}}}"}}, params: {{q: "{{{{ ctx.whole }}}}"}}}}
      - basic: {{kind: http, url: "{{{{ workload.url }}}}/echo", auth: login}}
      - bad: {{kind: http, url: "{{{{ workload.url }}}}/status/500",
               params: {{q: "{{{{ ctx.whole }}}}"}},
               spec: {{policy: {{rules: [{{else: {{then: {{do: continue}}}}}}]}}}}}}
      - gone: {{kind: http, url: "http://127.0.0.1:9/{{{{ ctx.whole | urlencode }}}}",
                spec: {{policy: {{rules: [{{else: {{then: {{do: continue}}}}}}]}}}}}}
      - py:
          kind: python
          args: {{s: "{{{{ ctx.whole }}}}", a: "{{{{ iter.again }}}}"}}
          code: |
            import base64, html, json, sys
            from urllib.parse import quote
            print(s)
            print(s.encode().hex(), s.encode().hex().upper(), html.escape(s), repr(s), s.encode())
            print(json.dumps(json.dumps({{"s": s}})), html.escape(s, quote=False))
            print(chr(27) + "]0;" + s + chr(7))
            print("err", a, file=sys.stderr)
            print(base64.b64encode(b"u:" + s.encode()).decode(), quote(s, safe=""), json.dumps(s))
            result = {{"s": s, "list": [s, "in " + s], s: "key", "long": ("x" * 3000 + s) * 3,
                       "b": base64.b64encode(s.encode()).decode(), "hex": s.encode().hex(),
                       "html": html.escape(s), "twice": json.dumps(json.dumps([s]))}}
      - raised:
          kind: python
          args: {{s: "{{{{ ctx.whole }}}}"}}
          code: "raise ValueError('no: ' + s + s.encode().hex() + repr([s]))"
          spec: {{policy: {{rules: [{{else: {{then: {{do: continue}}}}}}]}}}}
      - sql: {{kind: postgres, auth: pg, command: "select %s::text as s",
               params: ["{{{{ ctx.whole }}}}"]}}
      - wrong: {{kind: postgres, auth: pg, command: "select %s::int as s",
                 params: ["{{{{ ctx.whole }}}}"],
                 spec: {{policy: {{rules: [{{else: {{then: {{do: continue}}}}}}]}}}}}}
      - sh: {{kind: shell, command: "echo $S; echo $S >&2", env: {{S: "{{{{ ctx.whole }}}}"}}}}
      - duck: {{kind: duckdb, command: "select ? as s", params: ["{{{{ ctx.whole }}}}"]}}
      - fork: {{kind: playbook, path: child, args: {{s: "{{{{ ctx.whole }}}}"}}}}
    next:
      arcs: [{{step: each, args: {{s: "{{{{ ctx.whole }}}}", r: "{{{{ event.result }}}}"}}}}]
  - step: each
    loop: {{in: [1, 2, 3], iterator: n, spec: {{mode: parallel}}}}
    tool:
      - one:
          kind: python
          args: {{s: "{{{{ args.s }}}}", n: "{{{{ iter.n }}}}"}}
          code: |
            print(n, s)
            result = s
    next:
      arcs: [{{step: last}}]
  - step: last
    tool:
      - fail:
          kind: python
          args: {{s: "{{{{ ctx.auth }}}}"}}
          code: "raise RuntimeError(s)"
"""
CHILD = """
workload: {s: none}
workflow:
  - step: start
    tool:
      - use: {kind: python, args: {s: "{{ workload.s }}"}, code: "result = [s, len(s)]"}
"""


def of_orders(home: Path, set_up: dict[str, Any]) -> list[Answer]:
    """What commands say that act on executions; what they keep is kept in the home."""
    roots = [
        row["execution_id"]
        for row in noetl("list", "--json", **set_up).objects()
        if row["parent_execution_id"] is None
    ]
    archive = ("--archive", str(home / "archive"), "--yes")
    acts = [
        ("diff", *roots),
        ("diff", *roots, "--json"),
        ("restart", roots[0]),
        ("restart", roots[0], "--json"),
        ("cache", "list"),
        ("audit",),
        ("export", "--all", "--format", "jsonl", "-o", str(home / "events.jsonl")),
        ("export", "--all", "--format", "otlp", "-o", str(home / "spans.json")),
        ("prune", "--older-than", "0s", *archive),
    ]
    told = [noetl(*words, **set_up) for words in acts]
    assert [answer.code for answer in told] == [1, 1, 1, 1, 0, 0, 0, 0, 0], told
    assert len(list((home / "archive").rglob("*.jsonl"))) == 4
    return told


@pytest.mark.rule("KEY-2", "KEY-3")
def test_a_planted_secret_is_found_nowhere(
    http_server: HttpServer, database: Database, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    register(home, "pg", "postgres", msgspec.to_builtins(database))
    path = tmp_path / "p.yaml"
    path.write_text(HEAD + EVERYWHERE.format(url=http_server.url))
    (tmp_path / "child.yaml").write_text(HEAD + CHILD)
    login = json.dumps({"user": "u", "password": SECRET})
    set_up: dict[str, Any] = {"NOETL_HOME": str(home), "PLANTED": SECRET, "LOGIN": login}

    ran = noetl("run", path, **set_up)
    assert ran.code == 1
    assert "RuntimeError: Bearer ***" in ran.out
    as_json = noetl("run", path, "--json", **set_up)
    assert as_json.objects()[0]["ctx"] == {"auth": "***", "whole": "***"}
    answers = [ran, as_json, noetl("list", **set_up), noetl("credential", "list", **set_up)]
    for row in noetl("list", "--json", **set_up).objects()[:2]:  # the last one and its child
        name = row["execution_id"]
        for command in ("events", "logs", "status", "explain", "replay"):
            answers += [told(command, name, set_up), told(command, name, set_up, "--json")]
    answers += [noetl("credential", "show", "pg", **set_up), noetl("doctor", **set_up)]
    answers += of_orders(home, set_up)

    # It was used: the servers saw it.
    [echo, basic, *_] = http_server.seen
    assert echo.headers["authorization"] == f"Bearer {SECRET}"
    assert dict(echo.query)["q"] == SECRET
    assert msgspec.json.decode(echo.body) == {"s": SECRET}
    assert base64.b64decode(basic.headers["authorization"][6:]).decode() == f"u:{SECRET}"
    done = [
        json.loads(line)["data"]
        for answer in answers
        for line in answer.out.splitlines()
        if line.startswith("{") and '"task.done"' in line
    ]
    tasks = {data["task"]: data["outcome"] for data in done}
    assert {name for name, outcome in tasks.items() if outcome["status"] == "error"} == {
        "bad",
        "gone",
        "raised",
        "wrong",
        "fail",
    }
    assert "$secret" in tasks["sql"]["result"][0]["s"]
    assert "$secret" in tasks["sh"]["result"]["stdout"]
    assert "$secret" in tasks["duck"]["result"][0]["s"]
    assert finds(SECRET, home, *answers) == []
    assert finds(PASSWORD, home, *answers) == []


@pytest.mark.rule("KEY-2")
def test_a_large_body_is_masked_on_its_way_to_the_store(
    http_server: HttpServer, planted: str, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    text = f"""
keychain: [{{name: api, kind: bearer, provider: environment, key: PLANTED}}]
executor: {{spec: {{policy: {{limits: {{max_payload_bytes: 2000}}}}}}}}
workflow:
  - step: start
    tool:
      - ask:
          kind: http
          url: "{http_server.url}/echo"
          method: POST
          auth: api
          body: {{pad: "{"x" * 9000}"}}
      - size: {{kind: python, args: {{d: "{{{{ _prev.data }}}}"}}, code: "result = len(str(d))"}}
"""
    ran = run(text, home)
    assert ran.status == "completed", ran.error
    assert http_server.seen[0].headers["authorization"] == f"Bearer {planted}"
    assert ran.result("size") > 9000
    assert finds(planted, home) == []


@pytest.mark.rule("KEY-2")
def test_credentials_are_encrypted_at_rest(tmp_path: Path) -> None:
    register(tmp_path, "pg", "postgres", {"host": "db", "password": SECRET})
    assert finds(SECRET, tmp_path) == []
    connection = sqlite3.connect(tmp_path / "noetl.db")
    [[name, kind, sealed]] = connection.execute("select name, kind, sealed from credential")
    connection.close()
    assert (name, kind) == ("pg", "postgres")
    assert b"db" not in sealed
    assert os.stat(tmp_path / "key").st_mode & 0o777 == 0o600


@pytest.mark.rule("KEY-2")
@pytest.mark.parametrize(
    "words",
    [
        ("credential", "list"),
        ("credential", "list", "--json"),
        ("credential", "show", "pg"),
        ("credential", "show", "pg", "--json"),
        ("credential", "rotate"),
        ("credential", "rm", "pg"),
        ("credential", "add", "pg", "--kind", "postgres", "--field", SECRET),
        ("credential", "show", SECRET),
    ],
)
def test_no_command_says_a_value(words: tuple[str, ...], tmp_path: Path) -> None:
    register(tmp_path, "pg", "postgres", {"host": "db.example", "password": SECRET})
    told = noetl(*words, NOETL_HOME=str(tmp_path))
    if words[-1] != SECRET or "--field" in words:
        assert finds(SECRET, tmp_path, told) == []
    assert "db.example" not in told.out + told.err


ADDRESSES = {
    "a database": ("NOETL_DB", "postgresql://app:{}@127.0.0.1:9/x"),
    "a database's query": ("NOETL_DB", "postgresql://127.0.0.1:9/x?user=app&password={}"),
    "a port that is none": ("NOETL_DB", "postgresql://app:{}@127.0.0.1:port/x"),
    "a mode that is none": ("NOETL_DB", "postgresql://app:{}@127.0.0.1:9/x?sslmode=strange"),
    "another scheme": ("NOETL_DB", "mysql://app:{}@127.0.0.1:9/x"),
    "a queue": ("NOETL_QUEUE", "nats://app:{}@127.0.0.1:9"),
    "a queue's token": ("NOETL_QUEUE", "nats://{}@127.0.0.1:9"),
    "a queue without a port": ("NOETL_QUEUE", "nats://app:{}@127.0.0.1:port"),
    "a server": ("NOETL_SERVER", "http://app:{}@127.0.0.1:9"),
    "a token": ("NOETL_TOKEN", "{}"),
}
PASSWORDS = ("planted-1n-a-dsn", "pl4nted/1n-a-dsn", "pl4nted#1n-a-dsn", "pl4nted@1n-a/dsn")


@pytest.mark.rule("KEY-2")
@pytest.mark.parametrize("address", ADDRESSES)
def test_a_password_of_an_address_is_found_nowhere(address: str, tmp_path: Path) -> None:
    name, form = ADDRESSES[address]
    answers = []
    for password in PASSWORDS:
        environment: Any = {"NOETL_HOME": str(tmp_path), name: form.format(password)}
        answers.append(noetl("doctor", **environment))
        if name == "NOETL_SERVER":
            words = ("context", "add", "far", "--server", form.format(password))
            answers += [noetl(*words, **environment), noetl("context", "use", "far", **environment)]
            answers += [noetl("context", "list", **environment), noetl("list", **environment)]
            (tmp_path / "contexts.toml").unlink(missing_ok=True)  # it holds what it was given
        if answers[-1].code == 3:  # refused at once: no command waits for it
            answers.append(noetl("list", "--json", **environment))
    (tmp_path / "something").touch()
    for password in PASSWORDS:
        for piece in (password, *re.split("[/#@]", password)):
            assert len(piece) < 4 or finds(piece, tmp_path, *answers) == [], piece
    assert any("***" in answer.out + answer.err for answer in answers)
