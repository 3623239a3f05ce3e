"""KEY: credentials are found by name, lie encrypted, and never come out."""

import asyncio
import base64
import json
import os
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import pytest
from tests.support.app_server import serve
from tests.support.http_server import HttpServer
from tests.support.postgres import PASSWORD, Database
from tests.support.vault_server import ROOT_TOKEN, VaultServer
from tests.system.program import NOETL, Answer, noetl
from tests.system.running import running

from noetl.assembly import Local
from noetl.messages import events as e
from noetl.messages.codec import decode_events
from noetl.messages.reference import Reference
from noetl.settings import Settings

SECRET = 'pl4nted/s3cr3t+"ü" with blanks'
HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: t, path: t}\n"


class Ran(msgspec.Struct, frozen=True):
    """An execution that has ended."""

    status: str
    ctx: dict[str, Any]
    error: dict[str, Any] | None
    events: list[e.Event]

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    def result(self, task: str) -> Any:
        return next(done.outcome["result"] for done in self.of(e.TaskDone) if done.task == task)


def run(text: str, home: Path) -> Ran:
    async def whole() -> Ran:
        local = await Local.open(Settings(home=home))
        try:
            live = await local.start(HEAD + text, folder=str(home), payload={})
            await live.finished
            execution = live.execution
            rows = await local.home.log.read(execution.execution_id)
            events = [event for row in rows for event in decode_events(row.events)]
            return Ran(execution.status, execution.ctx, execution.error, events)
        finally:
            await local.close()

    return asyncio.run(whole())


def is_secret(value: Any) -> bool:
    return isinstance(value, Reference) and value.sealed is not None


def register(home: Path, name: str, kind: str, fields: dict[str, Any]) -> None:
    told = noetl(
        *("credential", "add", name, "--kind", kind, "--stdin"),
        stdin=json.dumps(fields).encode(),
        NOETL_HOME=str(home),
    )
    assert told.code == 0, told.err


# ── KEY-1 ────────────────────────────────────────────────────────────────────────────────────


def asking(server: HttpServer, keychain: str = "") -> str:
    return f"""{keychain}
workflow:
  - step: start
    tool:
      - ask: {{kind: http, url: "{server.url}/echo", auth: api}}
"""


ENTRIES = {
    "environment": "{name: api, kind: bearer, provider: environment, key: TOKEN_OF_TEST}",
    "with suffix": "{name: api, kind: bearer_credential, provider: environment, key: FIELDS}",
    "file": "{name: api, kind: bearer, provider: file, key: FILE}",
    "store": "{name: api, kind: bearer, provider: store, key: kept}",
    "default": "{name: api, kind: bearer, key: kept}",
    "inline": "{name: api, kind: bearer, token: the-token-1}",
}


@pytest.mark.rule("KEY-1")
@pytest.mark.parametrize("case", ENTRIES)
def test_an_entry_of_the_keychain_opens_the_door(
    case: str, http_server: HttpServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN_OF_TEST", "the-token-1")
    monkeypatch.setenv("FIELDS", '{"token": "the-token-1"}')
    (tmp_path / "token").write_text("the-token-1\n")
    register(tmp_path, "kept", "bearer", {"token": "the-token-1"})
    entry = ENTRIES[case].replace("FILE", str(tmp_path / "token"))
    ran = run(asking(http_server, f"keychain: [{entry}]"), tmp_path)
    assert ran.status == "completed", ran.error
    assert http_server.seen[0].headers["authorization"] == "Bearer the-token-1"


@pytest.mark.rule("KEY-1")
@pytest.mark.parametrize(
    ("kind", "fields", "header", "value"),
    [
        ("bearer", {"token": "the-token-2"}, "authorization", "Bearer the-token-2"),
        (
            "basic",
            {"user": "u", "password": "pass-word"},
            "authorization",
            f"Basic {base64.b64encode(b'u:pass-word').decode()}",
        ),
        ("api_key", {"key": "the-key", "header": "X-Key"}, "x-key", "the-key"),
    ],
)
def test_a_registered_credential_needs_no_entry(
    kind: str,
    fields: dict[str, Any],
    header: str,
    value: str,
    http_server: HttpServer,
    tmp_path: Path,
) -> None:
    register(tmp_path, "api", kind, fields)
    ran = run(asking(http_server), tmp_path)
    assert ran.status == "completed", ran.error
    assert http_server.seen[0].headers[header] == value


@pytest.mark.rule("KEY-1")
def test_a_database_is_opened_by_its_fields(database: Database, tmp_path: Path) -> None:
    register(tmp_path, "pg", "postgres", msgspec.to_builtins(database))
    text = """
workflow:
  - step: start
    tool:
      - ask: {kind: postgres, auth: pg, command: "select current_user as who"}
"""
    ran = run(text, tmp_path)
    assert ran.result("ask") == [{"who": database.user}]


@pytest.mark.rule("KEY-1")
@pytest.mark.parametrize(
    ("keychain", "kind", "retryable", "says"),
    [
        ("", "auth", False, "no credential 'api'"),
        (
            "keychain: [{name: api, kind: bearer, provider: environment, key: NO_SUCH}]",
            "auth",
            False,
            "there is no environment variable NO_SUCH",
        ),
        (
            "keychain: [{name: api, kind: bearer, provider: vault, key: a/b, auth: door},"
            " {name: door, kind: vault, address: 'http://127.0.0.1:9', token: a-token}]",
            "connection",
            True,
            "cannot be asked",
        ),
    ],
)
def test_a_credential_that_cannot_be_had_is_an_outcome(
    keychain: str, kind: str, retryable: bool, says: str, http_server: HttpServer, tmp_path: Path
) -> None:
    ran = run(asking(http_server, keychain), tmp_path)
    error = ran.of(e.TaskDone)[0].outcome["error"]
    assert (error["kind"], error["retryable"]) == (kind, retryable)
    assert says in error["message"]
    assert http_server.seen == []


# ── KEY-3 ────────────────────────────────────────────────────────────────────────────────────


FETCH = "      - get: {kind: secrets, provider: environment, name: PLANTED}\n"


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("PLANTED", SECRET)
    return SECRET


@pytest.mark.rule("KEY-3")
def test_the_result_of_secrets_is_the_value(planted: str, tmp_path: Path) -> None:
    text = f"""
workflow:
  - step: start
    tool:
{FETCH}
      - use:
          kind: python
          args: {{s: "{{{{ _prev }}}}"}}
          code: |
            result = [len(s), s == {planted!r}]
"""
    ran = run(text, tmp_path)
    assert ran.result("use") == [len(planted), True]
    assert is_secret(ran.result("get"))


@pytest.fixture
def vault(monkeypatch: pytest.MonkeyPatch) -> Iterator[VaultServer]:
    server = VaultServer()
    with serve(server.application) as url:
        monkeypatch.setenv("VAULT_ADDR", url)
        monkeypatch.setenv("VAULT_TOKEN", ROOT_TOKEN)
        yield server


@pytest.mark.rule("KEY-3")
@pytest.mark.parametrize("provider", ["environment", "file", "vault", "store"])
def test_every_provider_near_by_gives_the_same_value(
    provider: str, planted: str, vault: VaultServer, tmp_path: Path
) -> None:
    (tmp_path / "planted").write_text(planted)
    vault.secrets["secret/planted"] = {"value": planted}
    register(tmp_path, "planted", "generic", {"value": planted})
    names = {
        "environment": "PLANTED",
        "file": str(tmp_path / "planted"),
        "vault": "secret/planted",
        "store": "planted",
    }
    text = f"""
workflow:
  - step: start
    tool:
      - get: {{kind: secrets, provider: {provider}, name: "{names[provider]}"}}
      - use: {{kind: python, args: {{s: "{{{{ _prev }}}}"}}, code: "result = len(s)"}}
"""
    assert run(text, tmp_path).result("use") == len(planted)


PASSED_ON = f"""
workflow:
  - step: start
    tool:
{FETCH}
      - keep:
          kind: noop
          spec:
            policy:
              rules:
                - else:
                    then: {{do: continue, set_ctx: {{auth: "Bearer {{{{ _prev }}}}", plain: 1}}}}
    next:
      arcs: [{{step: use, args: {{token: "{{{{ ctx.auth }}}}"}}}}]
  - step: use
    tool:
      - use:
          kind: python
          args: {{a: "{{{{ token }}}}", c: "{{{{ ctx.auth[:7] }}}}", n: "{{{{ token | length }}}}"}}
          code: "result = [len(a), c == 'Bearer ', n]"
"""


@pytest.mark.rule("KEY-3")
def test_a_recorded_value_with_a_secret_is_sealed_and_workers_see_it(
    planted: str, tmp_path: Path
) -> None:
    ran = run(PASSED_ON, tmp_path)
    assert ran.status == "completed", ran.error
    length = len("Bearer ") + len(planted)
    assert ran.result("use") == [length, True, length]
    patch = ran.of(e.CtxPatched)[0].patch
    assert is_secret(patch["auth"])
    assert patch["plain"] == 1
    assert is_secret(ran.of(e.TokenCreated)[1].args["token"])


@pytest.mark.rule("KEY-3")
@pytest.mark.parametrize(
    "arc",
    [
        '{step: two, when: "{{ ctx.token == 1 }}"}',
        '{step: two, args: {t: "x {{ ctx.token }}"}}',
        '{step: two, args: {t: "{{ ctx.token | upper }}"}}',
        '{step: two, args: {t: "{{ ctx.token.user }}"}}',
    ],
)
@pytest.mark.usefixtures("planted")
def test_server_templates_can_only_pass_it_on(arc: str, tmp_path: Path) -> None:
    text = f"""
workflow:
  - step: start
    tool:
{FETCH}
      - keep:
          kind: noop
          spec:
            policy:
              rules:
                - else: {{then: {{do: continue, set_ctx: {{token: "{{{{ _prev }}}}"}}}}}}
    next: {{arcs: [{arc}]}}
  - step: two
    tool: [{{end: {{kind: noop}}}}]
"""
    ran = run(text, tmp_path)
    assert ran.status == "failed"
    assert ran.error is not None
    assert ran.error["kind"] == "template"
    assert "is a secret, which the server cannot read" in ran.error["message"]


@pytest.mark.rule("KEY-3")
def test_a_short_value_is_sealed_alone_and_left_inside_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLANTED", "abcde")
    text = f"""
workflow:
  - step: start
    tool:
{FETCH}
      - use:
          kind: python
          args: {{s: "{{{{ _prev }}}}"}}
          code: "result = {{'alone': s, 'inside': 'x ' + s}}"
"""
    result = run(text, tmp_path).result("use")
    assert is_secret(result["alone"])
    assert result["inside"] == "x abcde"


@pytest.mark.rule("KEY-3", "EVT-5")
@pytest.mark.usefixtures("planted")
def test_replay_needs_no_key(tmp_path: Path) -> None:
    run(PASSED_ON, tmp_path)
    (tmp_path / "key").unlink()
    home: dict[str, Any] = {"NOETL_HOME": str(tmp_path)}
    [listed] = noetl("list", "--json", **home).objects()
    told = noetl("replay", listed["execution_id"], "--verify", **home)
    assert told.code == 0, told.err
    assert not (tmp_path / "key").exists()


@pytest.mark.rule("KEY-3")
def test_another_process_opens_what_was_sealed(
    planted: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run is killed after the secret was recorded, and resumed without its source."""
    gate, home = tmp_path / "gate", tmp_path / "home"
    text = f"""
workflow:
  - step: start
    tool:
{FETCH}
      - wait:
          kind: python
          args: {{s: "{{{{ _prev }}}}", gate: "{gate}"}}
          code: |
            import os, time
            print("held " + s, flush=True)
            while not os.path.exists(gate):
                time.sleep(0.01)
            result = s
      - use: {{kind: python, args: {{s: "{{{{ _prev }}}}"}}, code: "result = len(s)"}}
"""
    path = tmp_path / "p.yaml"
    path.write_text(HEAD + text)
    with running("run", path, home=home) as first:
        assert first.wait_for("held") == "start | held ***"
        first.send(signal.SIGKILL)
    gate.touch()
    monkeypatch.delenv("PLANTED")
    resumed = noetl("resume", first.execution_id, "--json", NOETL_HOME=str(home))
    assert resumed.code == 0, resumed.err
    assert resumed.objects()[0]["result"] == len(planted)
    assert "held ***" in resumed.err
    assert finds(planted, home, resumed) == []


# ── KEY-2: a planted secret is searched for everywhere ───────────────────────────────────────


def forms(value: str) -> dict[str, bytes]:
    """How a secret might show up."""
    plain = value.encode()
    shown = {
        "plain": plain,
        "json": json.dumps(value)[1:-1].encode(),
        "json, raw": msgspec.json.encode(value)[1:-1],
        "twice json": json.dumps(json.dumps(value))[3:-3].encode(),
        "url": quote(value, safe="").encode(),
        "base64": base64.b64encode(plain)[:-4],
        "base64 after one": base64.b64encode(b"x" + plain)[2:-4],
        "base64 after two": base64.b64encode(b"xx" + plain)[3:-4],
    }
    return {name: form for name, form in shown.items() if len(form) > 5}


def finds(value: str, home: Path, *answers: Answer) -> list[str]:
    """Where the secret was found: in a file of the home, or in what a program said."""
    places = {str(path): path.read_bytes() for path in home.rglob("*") if path.is_file()}
    for number, answer in enumerate(answers):
        places[f"answer {number}"] = (answer.out + answer.err).encode()
    assert places
    return [
        f"{name} in {place}"
        for place, content in places.items()
        for name, form in forms(value).items()
        if form in content
    ]


def told(command: str, name: str, environment: dict[str, str], *more: str) -> Answer:
    """What a command says, the tracebacks of tasks included."""
    done = subprocess.run(
        [NOETL, command, name, *more],
        capture_output=True,
        check=False,
        env={**os.environ, **environment},
    )
    return Answer(done.returncode, done.stdout.decode(), done.stderr.decode())


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
            import base64, json, sys
            from urllib.parse import quote
            print(s)
            print("err", a, file=sys.stderr)
            print(base64.b64encode(b"u:" + s.encode()).decode(), quote(s, safe=""), json.dumps(s))
            result = {{"s": s, "list": [s, "in " + s], s: "key", "long": ("x" * 3000 + s) * 3,
                       "b": base64.b64encode(s.encode()).decode()}}
      - raised:
          kind: python
          args: {{s: "{{{{ ctx.whole }}}}"}}
          code: "raise ValueError('no: ' + s)"
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
    answers += [noetl("credential", "show", "pg", **set_up)]

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
