"""KEY-2: a planted secret that every other kind used is found nowhere, nor in what is exported."""

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import duckdb
import msgspec
import pytest
from tests.support import gcs, kubernetes, nats, s3
from tests.support.kubernetes import MISSING
from tests.support.leaks import HEAD, SECRET, finds, register
from tests.support.podman import IMAGE, Podman
from tests.support.snowflake import SnowPlace
from tests.system.program import Answer, noetl

pytestmark = pytest.mark.rule("KEY-2")

S = "{{ ctx.s }}"
IN_URL = "{{ ctx.s | urlencode | replace('/', '%2F') }}"
STARTS = ("pl4nted", "planted-")
"""What all that is planted begins with: an error that was cut short shows no part of it either."""
PLANTED = {
    "nats": "planted-nats-password",
    "wrong": "planted-wrong-password",
    "s3": "planted-s3-secret-key",
    "gcs": "planted-gcs-token",
    "account": "planted-gcs-private-key",
    "snow": "planted-snow-password",
    "key": "planted-snow-private-key",
    "registry": "planted-registry-password",
    "cluster": "planted-cluster-token",
    "stranger": "planted-stranger-token",
}
BELL = 'OPENQASM 2.0;\ninclude "qelib1.inc";\nqreg q[1];\ncreg c[1];\nh q[0];\nmeasure q -> c;\n'
Task = tuple[str, dict[str, Any]]
"""How the task ends, and its inputs."""

SCRIPTS: dict[str, Task] = {
    "given": (
        "ok",
        {
            "interpreter": "sh",
            "code": 'echo "$S"; cat; echo "$S" >&2',
            "stdin": S,
            "env": {"S": S},
        },
    ),
    "read": (
        "ok",
        {
            "interpreter": "python3",
            "code": "import json, sys; s = sys.stdin.read(); print(json.dumps({s: [s]}))",
            "stdin": S,
        },
    ),
    "ended": ("error", {"interpreter": "sh", "code": "cat >&2; exit 3", "stdin": S}),
    "argument": ("error", {"interpreter": "sh", "code": "true", "args": {"name": S}}),
    "nowhere": ("error", {"path": f"{S}.sh"}),
    "unknown": ("error", {"interpreter": S, "code": "x"}),
}
TRANSFORMS: dict[str, Task] = {
    "value": ("ok", {"value": {"a": S, "b": [f"in {S}"], "c": {"d": S}}}),
    "shaped": (
        "ok",
        {"jq": "{(.a): [.a, (.a | @base64), (.a | @uri), (.a | @json)]}", "input": {"a": S}},
    ),
    "told": ("error", {"jq": ".a | error", "input": {"a": S}}),
    "number": ("error", {"jq": ".a | tonumber", "input": {"a": S}}),
    "index": ("error", {"jq": ".[0][.[0]]", "input": [S]}),
}
MESSAGES: dict[str, Task] = {
    "put": ("ok", {"operation": "kv_put", "bucket": "b", "key": "k", "value": S, "create": True}),
    "look": ("ok", {"operation": "kv_get", "bucket": "b", "key": "k"}),
    "keep": (
        "ok",
        {"operation": "object_put", "bucket": "o", "key": S, "value": {"a": S}, "create": True},
    ),
    "fetch": ("ok", {"operation": "object_get", "bucket": "o", "key": S}),
    "publish": ("ok", {"operation": "publish", "subject": "a", "value": [S], "headers": {"H": S}}),
    "nobody": ("error", {"operation": "request", "subject": "nobody", "value": S}),
    "subject": ("error", {"operation": "publish", "subject": S}),
    "key": ("error", {"operation": "kv_get", "bucket": "b", "key": S}),
    "bucket": ("error", {"operation": "kv_get", "bucket": S, "key": "k"}),
    "missing": ("error", {"operation": "object_get", "bucket": "o", "key": f"no {S}"}),
    "wrong": ("error", {"operation": "publish", "subject": "a", "auth": "wrong"}),
    "away": (
        "error",
        {"operation": "publish", "subject": "a", "url": f"nats://u:{IN_URL}@127.0.0.1:9"},
    ),
}
OBJECTS: dict[str, Task] = {
    "put": ("ok", {"operation": "put", "key": "k", "body": S}),
    "json": ("ok", {"operation": "put", "key": "a.json", "body": {"a": [S]}}),
    "had": ("ok", {"operation": "get", "key": "k"}),
    "read": ("ok", {"operation": "get", "key": "a.json"}),
    "named": ("ok", {"operation": "put", "key": S, "body": "x"}),
    "list": ("ok", {"operation": "list"}),
    "copy": ("ok", {"operation": "copy", "key": f"{S}/b", "source": S}),
    "missing": ("error", {"operation": "get", "key": f"no/{S}"}),
    "bucket": ("error", {"operation": "get", "bucket": S, "key": "k"}),
    "path": ("error", {"operation": "put", "key": "k", "path": f"{S}.txt"}),
    "away": ("error", {"operation": "get", "key": S, "auth": "away"}),
}
ACCOUNT: dict[str, Task] = {"none": ("error", {"operation": "get", "key": "k", "auth": "account"})}
STATEMENTS: dict[str, Task] = {
    "select": ("ok", {"command": "select %s as s", "params": [S]}),
    "keep": ("ok", {"command": "create table t (s varchar)"}),
    "rows": ("ok", {"command": "insert into t values (%s)", "rows": [[S], [f"in {S}"]]}),
    "all": ("ok", {"command": "select s from t"}),
    "cast": ("error", {"command": "select %s::int as s", "params": [S]}),
    "name": ("error", {"command": "select * from identifier(%s)", "params": [S]}),
    "key": ("error", {"command": "select 1", "auth": "key"}),
    "refused": ("error", {"command": "select 1", "auth": "refused"}),
}
CIRCUITS: dict[str, Task] = {
    "submit": ("ok", {"operation": "submit", "circuit": f"// {S}\n{BELL}", "shots": 5}),
    "gate": ("error", {"operation": "submit", "circuit": BELL.replace("h q", f"{S} q")}),
    "include": ("error", {"operation": "submit", "circuit": BELL.replace("qelib1.inc", S)}),
    "parameter": ("error", {"operation": "submit", "circuit": BELL, "parameters": {S: 1}}),
    "angle": ("error", {"operation": "submit", "circuit": BELL, "parameters": {"theta": S}}),
    "backend": ("error", {"operation": "submit", "circuit": BELL, "backend": S}),
    "provider": ("error", {"operation": "submit", "circuit": BELL, "provider": S}),
    "poll": ("error", {"operation": "poll", "job": S}),
    "fetch": ("error", {"operation": "fetch", "job": S}),
}
CONTAINERS: dict[str, Task] = {
    "given": (
        "ok",
        {
            "command": 'echo "$S"; cat; echo "$S" >&2',
            "stdin": S,
            "env": {"S": S},
        },
    ),
    "ended": ("error", {"command": 'echo "$S" >&2; exit 3', "env": {"S": S}}),
    "program": ("error", {"command": [S]}),
    "image": ("error", {"image": S}),
    "network": ("error", {"command": "true", "network": S}),
    "workdir": ("error", {"command": "true", "workdir": S}),
    "mount": ("error", {"command": "true", "mounts": [{"source": S, "target": "/x"}]}),
    "login": ("error", {"image": "127.0.0.1:9/none:1", "auth": "registry"}),
}
JOBS: dict[str, Task] = {
    "given": ("ok", {"command": 'echo "$S"', "env": {"S": S}}),
    "ended": ("error", {"command": 'echo "$S"; exit 3', "env": {"S": S}}),
    "word": ("error", {"command": ["echo", S]}),
    "input": ("error", {"command": "true", "stdin": S}),
    "missing": ("error", {"command": "true", "image": MISSING, "env": {"S": S}}),
    "denied": ("error", {"command": "true", "auth": "stranger"}),
    "away": ("error", {"command": "true", "auth": "nowhere"}),
}
KINDS: dict[str, tuple[dict[str, Any], dict[str, Task]]] = {
    "script": ({}, SCRIPTS),
    "transform": ({}, TRANSFORMS),
    "nats": ({"auth": "nats"}, MESSAGES),
    "s3": ({"bucket": s3.BUCKET, "auth": "s3"}, OBJECTS),
    "gcs": ({"bucket": gcs.BUCKET, "auth": "gcs"}, {**OBJECTS, **ACCOUNT}),
    "snowflake": ({"auth": "snow"}, STATEMENTS),
    "quantum": ({}, CIRCUITS),
    "container": ({"image": IMAGE}, CONTAINERS),
    "kubernetes": (
        {"kind": "container", "engine": "kubernetes", "image": "alpine:3", "auth": "cluster"},
        JOBS,
    ),
}
"""What all tasks of a kind share, and the tasks."""


def step_of(kind: str, next_kind: str | None) -> dict[str, Any]:
    """One step per kind, so that a kind's tasks have a prefix of their own."""
    shared, tasks = KINDS[kind]
    on = {"policy": {"rules": [{"else": {"then": {"do": "continue"}}}]}}
    called = [
        {f"{kind}_{name}": {"kind": kind, **shared, **inputs, "spec": on}}
        for name, (_, inputs) in tasks.items()
    ]
    then = {} if next_kind is None else {"next": {"arcs": [{"step": next_kind}]}}
    return {"step": kind, "tool": called, **then}


def playbook() -> str:
    keep = {"do": "continue", "set_ctx": {"s": "{{ outcome.result }}"}}
    unlock = {
        "unlock": {
            "kind": "secrets",
            "provider": "environment",
            "name": "PLANTED",
            "spec": {"policy": {"rules": [{"else": {"then": keep}}]}},
        }
    }
    names = list(KINDS)
    first = {"step": "start", "tool": [unlock], "next": {"arcs": [{"step": names[0]}]}}
    steps = [step_of(*pair) for pair in zip(names, [*names[1:], None], strict=True)]
    return HEAD + json.dumps({"workflow": [first, *steps]})[1:-1]


class Place(msgspec.Struct, frozen=True):
    """A home in which everything ran, what the program said of it, and what the servers hold."""

    home: Path
    answers: list[Answer]
    done: dict[str, dict[str, Any]]
    objects: dict[str, bytes]


def credentials(
    home: Path,
    bus: nats.NatsServer,
    s3: s3.S3Place,
    gcs: gcs.GcsPlace,
    snow: SnowPlace,
    cluster: kubernetes.Cluster,
) -> None:
    user = {"url": bus.url, "user": "u"}
    account = {"client_email": "a@b", "token_uri": gcs.endpoint, "endpoint": gcs.endpoint}
    given: dict[str, tuple[str, dict[str, Any]]] = {
        "nats": ("generic", {**user, "password": PLANTED["nats"]}),
        "wrong": ("generic", {**user, "password": PLANTED["wrong"]}),
        "s3": ("s3", {**s3.credential, "secret_access_key": PLANTED["s3"]}),
        "away": (
            "generic",
            {
                "token": PLANTED["gcs"],
                "access_key_id": "k",
                "secret_access_key": PLANTED["s3"],
                "endpoint": "http://127.0.0.1:9",
            },
        ),
        "gcs": ("gcs", {"endpoint": gcs.endpoint, "token": PLANTED["gcs"]}),
        "account": ("gcs", {**account, "private_key": PLANTED["account"]}),
        "snow": ("snowflake", {**snow.credential, "password": PLANTED["snow"]}),
        "refused": ("snowflake", {**snow.credential, "password": PLANTED["snow"], "port": 1}),
        "key": ("snowflake", {**snow.credential, "private_key": PLANTED["key"]}),
        "cluster": ("generic", cluster.credential),
        "stranger": ("generic", {**cluster.credential, "token": PLANTED["stranger"]}),
        "nowhere": ("generic", {**cluster.credential, "address": "http://127.0.0.1:9"}),
        "registry": (
            "generic",
            {"host": "127.0.0.1:9", "username": "u", "password": PLANTED["registry"]},
        ),
    }
    for name, (kind, fields) in given.items():
        register(home, name, kind, {key: one for key, one in fields.items() if key != "kind"})


@pytest.fixture(scope="module")
def place(
    snow_server: SnowPlace, podman: Podman, tmp_path_factory: pytest.TempPathFactory
) -> Place:
    folder = tmp_path_factory.mktemp("planted")
    home, file = folder / "home", folder / "p.yaml"
    file.write_text(playbook())
    with ExitStack() as stack:
        users = f'authorization {{ user: u, password: "{PLANTED["nats"]}" }}'
        bus = stack.enter_context(nats.running(users))
        amazon, google = stack.enter_context(s3.serving()), stack.enter_context(gcs.serving())
        cluster = stack.enter_context(kubernetes.running(PLANTED["cluster"]))
        credentials(home, bus, amazon, google, snow_server, cluster)
        set_up: dict[str, Any] = {**podman.environment, "NOETL_HOME": str(home)}
        ran = noetl("run", file, "--json", **set_up, PLANTED=SECRET)
        assert ran.code == 0, ran
        held = {
            "s3": amazon.bytes_at("k"),
            "gcs": google.bytes_at("k"),
            "kubernetes": cluster.made[0]["stringData"]["S"].encode(),
        }
    name = ran.objects()[0]["execution_id"]
    answers = [ran]
    # Asked by processes that know no secret: nothing is left for them to mask.
    for command in ("events", "logs", "status", "explain", "replay"):
        answers += [noetl(command, name, **set_up), noetl(command, name, "--json", **set_up)]
    told = noetl("events", name, "--json", "--name", "task.done", **set_up).objects()
    done = {one["data"]["task"]: one["data"]["outcome"] for one in told}
    return Place(home, answers, done, held)


@pytest.mark.parametrize("kind", KINDS)
def test_every_task_ended_as_it_should_and_used_it(place: Place, kind: str) -> None:
    asked = {f"{kind}_{name}": status for name, (status, _) in KINDS[kind][1].items()}
    ended = {name: place.done[name] for name in asked}
    assert {name: outcome["status"] for name, outcome in ended.items()} == asked, ended


def test_it_came_where_it_was_to_go(place: Place) -> None:
    assert place.objects == dict.fromkeys(("s3", "gcs", "kubernetes"), SECRET.encode())
    used = [
        place.done["nats_look"]["result"]["data"],
        place.done["s3_had"]["result"]["data"],
        place.done["gcs_had"]["result"]["data"],
        place.done["snowflake_select"]["result"][0]["S"],
        place.done["transform_value"]["result"]["a"],
        place.done["script_given"]["result"]["stdout"],
        place.done["container_given"]["result"]["stderr"],
        place.done["kubernetes_given"]["result"]["stdout"],
    ]
    assert [set(value) for value in used] == [{"$secret"}] * len(used)


@pytest.mark.parametrize("value", [SECRET, *PLANTED.values(), *STARTS])
def test_it_is_found_nowhere(place: Place, value: str) -> None:
    assert finds(value, place.home, *place.answers) == []


def text_of(file: Path) -> str:
    """What a file says; of Parquet every value, because its pages are compressed."""
    if file.suffix != ".parquet":
        return file.read_text()
    with duckdb.connect() as connection:
        rows = connection.execute("select * from read_parquet(?)", [str(file)]).fetchall()
    return "\n".join(str(value) for row in rows for value in row)


@pytest.mark.parametrize("form", ["jsonl", "parquet", "otlp", "clickhouse"])
def test_it_is_in_no_export(place: Place, form: str, tmp_path: Path) -> None:
    file = tmp_path / f"log.{form}"
    told = noetl("export", "--all", "--format", form, "-o", file, NOETL_HOME=str(place.home))
    assert told.code == 0, told.err
    text = text_of(file)
    for name in KINDS:
        assert f"{name}_" in text, "the tasks are in it"
    exported = Answer(0, text, "")
    for value in (SECRET, *PLANTED.values(), *STARTS):
        assert finds(value, tmp_path, told, exported) == []
