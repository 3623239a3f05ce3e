"""KEY: credentials are found by name, lie encrypted, and never come out."""

import base64
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.support.app_server import serve
from tests.support.http_server import HttpServer
from tests.support.leaks import HEAD, SECRET, finds, is_secret, register, run
from tests.support.postgres import Database
from tests.support.vault_server import ROOT_TOKEN, VaultServer
from tests.system.program import noetl
from tests.system.running import running

from noetl.messages import events as e

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
    "fields": "{name: api, kind: api_key, fields: {header: authorization, key: KEY}}".replace(
        "KEY", "Bearer the-token-1"
    ),
}


@pytest.mark.rule("KEY-1")
@pytest.mark.parametrize("case", ENTRIES)
def test_an_entry_of_the_keychain_opens_the_door(
    case: str, http_server: HttpServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN_OF_TEST", "the-token-1")
    monkeypatch.setenv("FIELDS", '{"token": "the-token-1"}')
    (tmp_path / "token").write_text("the-token-1\n")
    home = tmp_path / "home"
    register(home, "kept", "bearer", {"token": "the-token-1"})
    entry = ENTRIES[case].replace("FILE", str(tmp_path / "token"))
    ran = run(asking(http_server, f"keychain: [{entry}]"), home)
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


@pytest.mark.rule("KEY-1", "KEY-2")
@pytest.mark.parametrize(
    ("key", "says"),
    [("no key", "key 1 is not 32 bytes in base64"), ("A" * 43 + "=", "was sealed with key")],
)
def test_a_wrong_key_is_an_outcome(
    key: str, says: str, http_server: HttpServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    register(tmp_path, "api", "bearer", {"token": "the-token-1"})
    assert run(asking(http_server), tmp_path).status == "completed"
    monkeypatch.setenv("NOETL_KEY", key)
    error = run(asking(http_server), tmp_path).of(e.TaskDone)[0].outcome["error"]
    assert error["kind"] == "auth"
    assert says in error["message"]


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
    register(tmp_path / "home", "planted", "generic", {"value": planted})
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
    assert run(text, tmp_path / "home").result("use") == len(planted)


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


@pytest.mark.rule("KEY-3", "EVT-4")
@pytest.mark.parametrize(
    ("write", "read"),
    [
        ("set_ctx: {big: LARGE}", "ctx.big"),
        ("set_iter: {big: LARGE}", "iter.big"),
        ("set_prev: LARGE", "_prev"),
    ],
)
def test_a_large_write_with_a_secret_is_sealed_before_it_is_moved_to_the_store(
    write: str, read: str, planted: str, tmp_path: Path
) -> None:
    """A reference hides from the report what stands behind it: to look then is too late."""
    then = write.replace("LARGE", "\"{{ 'x' * 9000 ~ _prev }}\"")
    text = f"""
executor: {{spec: {{policy: {{limits: {{max_payload_bytes: 2000}}}}}}}}
workflow:
  - step: start
    loop: {{in: [1], iterator: n}}
    tool:
{FETCH}
      - keep: {{kind: noop, spec: {{policy: {{rules: [{{else: {{then: {{{then}}}}}}}]}}}}}}
      - use: {{kind: python, args: {{s: "{{{{ {read} }}}}"}}, code: "result = len(s)"}}
"""
    ran = run(text, tmp_path)
    assert ran.status == "completed", ran.error
    assert ran.result("use") == 9000 + len(planted)
    assert finds(planted, tmp_path) == []


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


@pytest.mark.rule("KEY-3", "LOOP-5")
def test_equal_secrets_are_equal_writes(planted: str, tmp_path: Path) -> None:
    text = f"""
workflow:
  - step: start
    loop:
      in: [1, 2, 3]
      iterator: n
      spec: {{mode: parallel, policy: {{reduce: {{all: append}}}}}}
    tool:
{FETCH}
      - keep:
          kind: noop
          spec:
            policy:
              rules:
                - else:
                    then: {{set_ctx: {{same: "x {{{{ _prev }}}}", all: "{{{{ _prev }}}}"}}}}
    next: {{arcs: [{{step: use, args: {{all: "{{{{ ctx.all }}}}"}}}}]}}
  - step: use
    tool:
      - each:
          kind: iterator
          in: "{{{{ args.all }}}}"
          iterator: one
          tool:
            - count: {{kind: python, args: {{s: "{{{{ iter.one }}}}"}}, code: "result = len(s)"}}
      - same: {{kind: python, args: {{s: "{{{{ ctx.same }}}}"}}, code: "result = len(s)"}}
"""
    ran = run(text, tmp_path)
    assert ran.status == "completed", ran.error
    assert ran.result("each") == [len(planted)] * 3
    assert ran.result("same") == len(planted) + 2


@pytest.mark.rule("KEY-3")
@pytest.mark.usefixtures("planted")
def test_the_server_cannot_loop_over_a_secret(tmp_path: Path) -> None:
    text = f"""
workflow:
  - step: start
    tool:
{FETCH}
    next: {{arcs: [{{step: each, args: {{all: "{{{{ event.result }}}}"}}}}]}}
  - step: each
    loop: {{in: "{{{{ args.all }}}}", iterator: one}}
    tool: [{{t: {{kind: noop}}}}]
"""
    ran = run(text, tmp_path)
    assert ran.status == "failed"
    assert ran.error is not None
    assert "is a secret, which the server cannot read" in ran.error["message"]
