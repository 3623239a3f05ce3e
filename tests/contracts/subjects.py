"""The kinds under test, each with its calls, for the contract of tools."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import nats
from tests.support.http_server import HttpServer
from tests.support.nats import NatsServer
from tests.support.podman import Podman
from tests.support.postgres import Database
from tests.support.workplace import BenchPlace
from tests.unit.tools.quantum.bench import Elsewhere

from noetl.kinds.code import ContainerInputs, PythonInputs, ScriptInputs, ShellInputs
from noetl.kinds.flow import TransformInputs
from noetl.kinds.http import HttpInputs
from noetl.kinds.kind import Inputs
from noetl.kinds.messaging import NatsInputs
from noetl.kinds.quantum import QuantumInputs
from noetl.kinds.sql import DuckdbInputs, PostgresInputs
from noetl.tools.container.tool import ContainerTool
from noetl.tools.http.tool import HttpTool
from noetl.tools.nats.tool import NatsTool
from noetl.tools.process.tool import ScriptTool, ShellTool
from noetl.tools.python.tool import PythonTool
from noetl.tools.quantum.tool import Providers, QuantumTool
from noetl.tools.sql.duck import DuckDbTool
from noetl.tools.sql.postgres import PostgresTool
from noetl.tools.tool import Tool
from noetl.tools.transform.tool import TransformTool


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """One kind under test."""

    tool: Callable[[], Tool]
    good: Inputs
    bad: Inputs
    endless: Inputs
    block: frozenset[str]
    """The fields that the kind's block has in every outcome."""
    place: BenchPlace


def http(server: HttpServer) -> Subject:
    return Subject(
        tool=HttpTool,
        good=HttpInputs(url=f"{server.url}/echo"),
        bad=HttpInputs(url="http://nowhere.invalid/"),
        endless=HttpInputs(url=f"{server.url}/hang"),
        block=frozenset({"status", "headers"}),
        place=BenchPlace(),
    )


def postgres(database: Database) -> Subject:
    return Subject(
        tool=PostgresTool,
        good=PostgresInputs(command="select 1 as v", auth="db"),
        bad=PostgresInputs(command="select 1/0", auth="db"),
        endless=PostgresInputs(command="select pg_sleep(600)", auth="db"),
        block=frozenset({"code", "sqlstate", "message", "rowcount", "place"}),
        place=BenchPlace(db=database.credential),
    )


def duckdb(_: Path) -> Subject:
    return Subject(
        tool=DuckDbTool,
        good=DuckdbInputs(command="select 1 as v"),
        bad=DuckdbInputs(command="select missing"),
        endless=DuckdbInputs(command="select count(*) from range(1000000000000) a, range(9999) b"),
        block=frozenset({"exception_type", "message", "rowcount"}),
        place=BenchPlace(),
    )


def python(home: Path) -> Subject:
    return Subject(
        tool=lambda: PythonTool(home, children=2),
        good=PythonInputs(code="result = [1, 2]"),
        bad=PythonInputs(code="1 / 0"),
        endless=PythonInputs(code="while True: pass"),
        block=frozenset({"exception_type", "traceback"}),
        place=BenchPlace(),
    )


def script(_: Path) -> Subject:
    return Subject(
        tool=ScriptTool,
        good=ScriptInputs(code="#!/bin/sh\necho hello"),
        bad=ScriptInputs(code="exit 3", interpreter="sh"),
        endless=ScriptInputs(code="sleep 600", interpreter="sh"),
        block=frozenset({"exit_code", "signal"}),
        place=BenchPlace(),
    )


def shell(_: Path) -> Subject:
    return Subject(
        tool=ShellTool,
        good=ShellInputs(command="echo hello"),
        bad=ShellInputs(command="kill -SEGV $$"),
        endless=ShellInputs(command="sleep 600"),
        block=frozenset({"exit_code", "signal"}),
        place=BenchPlace(),
    )


def transform(_: Path) -> Subject:
    return Subject(
        tool=TransformTool,
        good=TransformInputs(jq="map(. + 1)", input=[1, 2]),
        bad=TransformInputs(jq=".a", input=1),
        endless=TransformInputs(jq="def f: f; f"),
        block=frozenset({"outputs"}),
        place=BenchPlace(),
    )


def messaging(server: NatsServer) -> Subject:
    """A stream that acknowledges nothing lets a request wait."""

    async def prepare() -> None:
        peer = await nats.connect(server.url)
        stream = peer.jetstream()
        await stream.add_stream(name="SILENT", subjects=["silent"], no_ack=True)
        bucket = await stream.create_key_value(bucket="contract")
        await bucket.put("k", b'{"a": 1}')
        await peer.close()

    asyncio.run(prepare())
    return Subject(
        tool=NatsTool,
        good=NatsInputs(operation="kv_get", bucket="contract", key="k", url=server.url),
        bad=NatsInputs(operation="request", subject="nobody", url=server.url),
        endless=NatsInputs(operation="request", subject="silent", url=server.url),
        block=frozenset({"code", "description"}),
        place=BenchPlace(),
    )


def quantum(_: Path) -> Subject:
    """By a provider of others: the contract is the tool's, whoever runs the circuits."""
    return Subject(
        tool=lambda: QuantumTool(Providers({"elsewhere": Elsewhere})),
        good=QuantumInputs(operation="fetch", provider="elsewhere", job="j1"),
        bad=QuantumInputs(operation="poll", provider="elsewhere", job="unknown"),
        endless=QuantumInputs(operation="poll", provider="elsewhere", job="asleep"),
        block=frozenset(
            {"operation", "provider", "job", "status", "backend", "circuit", "parameters"}
            | {"shots", "seed", "versions", "digest"}
        ),
        place=BenchPlace(),
    )


def container(podman: Podman) -> Subject:
    return Subject(
        tool=lambda: ContainerTool(podman.environment, grace=1),
        good=ContainerInputs(image=podman.image, command=["echo", "there"]),
        bad=ContainerInputs(image="not-there"),
        endless=ContainerInputs(image=podman.image, command=["sleep", "600"]),
        block=frozenset({"engine", "image", "image_id", "exit_code", "oom_killed"}),
        place=BenchPlace(),
    )


SUBJECTS: dict[str, tuple[Callable[[Any], Subject], str]] = {
    "http": (http, "http_server"),
    "postgres": (postgres, "database"),
    "duckdb": (duckdb, "tmp_path"),
    "python": (python, "tmp_path"),
    "script": (script, "tmp_path"),
    "shell": (shell, "tmp_path"),
    "transform": (transform, "tmp_path"),
    "nats": (messaging, "nats_server"),
    "quantum": (quantum, "tmp_path"),
    "container": (container, "podman"),
}
"""Kind → what makes its subject, and the fixture that it needs."""
