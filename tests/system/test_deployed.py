"""What `deploy/` sets up works: its secrets, its NATS, its settings; workers without a database."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import yaml
from tests.house.tree import ROOT
from tests.support.fleet import Fleet, Member, free_port
from tests.support.nats import NatsServer
from tests.support.postgres import Database
from tests.system.program import noetl

from noetl.client.client import Client

SERVICES = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text("utf-8"))["services"]
LARGE = """apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: large, path: tests/large}
workflow:
  - step: large
    tool:
      - make:
          kind: python
          code: "result = 'x' * 2000000"
          spec:
            policy:
              rules:
                - else: {then: {do: continue, set_ctx: {text: "{{ outcome.result }}"}}}
    next: {arcs: [{step: count}]}
  - step: count
    tool:
      - size:
          kind: python
          args: {text: "{{ ctx.text }}"}
          code: "result = len(text)"
"""


def made(folder: Path, database: Database) -> tuple[Path, NatsServer]:
    """The folder as its script leaves it, with addresses of this machine."""
    deploy = shutil.copytree(
        ROOT / "deploy", folder / "deploy", ignore=shutil.ignore_patterns("secrets")
    )
    (folder / "bin").mkdir()
    (folder / "bin" / "chown").write_text("#!/bin/sh\n")  # the user of the image is not here
    (folder / "bin" / "chown").chmod(0o755)
    path = f"{folder / 'bin'}:/usr/bin:/bin"
    subprocess.run(["sh", deploy / "secrets.sh"], check=True, env={"PATH": path})
    secrets, port = deploy / "secrets", free_port()
    shutil.copy(secrets / "nats-users.conf", deploy / "users.conf")
    text = (deploy / "nats.conf").read_text("utf-8")
    text = text.replace("http_port: 8222\n", "").replace("/data", str(folder / "store"))
    (deploy / "server.conf").write_text(text)
    for name in ("server.toml", "worker.toml"):
        (secrets / name).chmod(0o600)
        told = (secrets / name).read_text("utf-8").replace("@nats:4222", f"@127.0.0.1:{port}")
        lines = [f'db = "{database.url}"' if "db =" in line else line for line in told.splitlines()]
        (secrets / name).write_text("\n".join(lines))
    return secrets, NatsServer(port, deploy)


def environment(service: str, secrets: Path) -> dict[str, str]:
    """As compose gives it, the files found where they are here."""
    given = SERVICES[service]["environment"]
    return {
        **{name: text.replace("/run/secrets", str(secrets)) for name, text in given.items()},
        "NOETL_HOST": "127.0.0.1",
    }


@contextmanager
def deployed(folder: Path, database: Database) -> Iterator[tuple[Fleet, Path]]:
    secrets, queue = made(folder, database)
    fleet = Fleet(folder, database, "")
    try:
        assert queue.start(), "NATS does not take its settings"
        for name, service in (("server", "server-1"), ("server", "server-2"), ("worker", "worker")):
            fleet._settings = environment(service, secrets)
            _ = fleet.server() if name == "server" else fleet.worker()
        yield fleet, secrets
    finally:
        fleet.close()
        queue.stop()


def test_what_is_deployed_runs_with_auth_and_keeps_large_results(
    database: Database, tmp_path: Path
) -> None:
    with deployed(tmp_path, database) as (fleet, secrets):
        fleet.ready()
        beside = {"NOETL_HOME": str(tmp_path / "me"), **environment("server-1", secrets)}
        words = ("server", "token", "add", "me", "--role", "admin")
        token = noetl(*words, stdin=b"", **beside).out.split()[0]
        first, second = (url_of(server) for server in fleet.servers)
        with closing(Client(first, token=token)) as client:
            client.register(LARGE)
            begun = client.execute("tests/large", payload={})
        with closing(Client(second, token=token)) as client:
            summary = client.summary(begun.execution_id, wait=60.0)
        assert (summary.status, summary.result) == ("completed", 2_000_000), fleet.told()
    kept = sum(file.stat().st_size for file in (tmp_path / "store").rglob("*.blk"))
    assert kept > 2_000_000, "it lies in NATS"


def url_of(server: Member) -> str:
    assert server.url is not None, "a server has an address"
    return server.url
