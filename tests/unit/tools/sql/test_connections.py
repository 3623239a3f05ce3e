"""What a PostgreSQL that a playbook names gets to know of the worker: nothing of its own."""

import asyncio
import struct
from pathlib import Path
from typing import Any

import pytest
from tests.support.workplace import BenchPlace, call_of

from noetl.kinds.sql import PostgresInputs
from noetl.messages.outcome import Outcome
from noetl.tools.sql.postgres import PostgresTool

CLEARTEXT = b"R" + struct.pack("!ii", 8, 3)
OWN = "of-the-worker-s-user"


class Asking:
    """Asks whoever connects for a password, as it is."""

    def __init__(self) -> None:
        self.heard = b""
        self.calls = 0
        self.gone = asyncio.Event()

    async def greet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.calls += 1
        try:
            size, code = struct.unpack("!ii", await reader.readexactly(8))
            if code == 80877103:  # asks for TLS
                writer.write(b"N")
                size, _ = struct.unpack("!ii", await reader.readexactly(8))
            await reader.readexactly(size - 8)
            writer.write(CLEARTEXT)
            self.heard += await reader.read(1000)
        except asyncio.IncompleteReadError:  # who insists on TLS hangs up
            pass
        finally:
            writer.close()
            self.gone.set()


def asked(credential: dict[str, Any], private: tuple[str, ...] = ()) -> tuple[Outcome, Asking]:
    return asyncio.run(called(credential, private))


async def called(credential: dict[str, Any], private: tuple[str, ...]) -> tuple[Outcome, Asking]:
    asking = Asking()
    async with await asyncio.start_server(asking.greet, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        place = BenchPlace(
            db={
                "kind": "postgres",
                **{
                    key: value.format(port=port) if isinstance(value, str) else value
                    for key, value in credential.items()
                },
            }
        )
        tool = PostgresTool()
        try:
            call = call_of(PostgresInputs(command="select 1", auth="db"), private=private)
            outcome = await tool.call(call, place)
        finally:
            await tool.close()
        if asking.calls:
            await asking.gone.wait()
        return outcome, asking


@pytest.fixture(autouse=True)
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user who has passwords in all places where the driver looks."""
    passwords, services = tmp_path / "pgpass", tmp_path / "services"
    passwords.write_text(f"*:*:*:*:{OWN}\n")
    passwords.chmod(0o600)
    services.write_text(f"[prod]\npassword={OWN}\n")
    monkeypatch.setenv("PGPASSFILE", str(passwords))
    monkeypatch.setenv("PGSERVICEFILE", str(services))


@pytest.mark.parametrize("variable", ["", "PGPASSWORD", "PGSERVICE"])
@pytest.mark.parametrize(
    "credential",
    [
        {"host": "127.0.0.1", "port": "{port}", "user": "x", "database": "d"},
        {"dsn": "postgresql://x@127.0.0.1:{port}/d"},
        {"dsn": "host=127.0.0.1 port={port} user=x dbname=d passfile=$PGPASSFILE"},
    ],
)
def test_no_server_is_shown_a_password_of_the_worker_s_user(
    monkeypatch: pytest.MonkeyPatch, credential: dict[str, Any], variable: str
) -> None:
    if variable:
        monkeypatch.setenv(variable, OWN if variable == "PGPASSWORD" else "prod")
    outcome, asking = asked(credential)
    assert outcome.error is not None
    assert asking.calls == 1
    assert OWN.encode() not in asking.heard


def test_no_service_of_the_worker_s_user_is_named() -> None:
    outcome, asking = asked({"dsn": "service=prod host=127.0.0.1 port={port} user=x"})
    assert outcome.error is not None
    assert (outcome.error["kind"], asking.calls) == ("auth", 0)
    assert "names a service of the worker's user" in outcome.error["message"]


def test_the_password_of_the_credential_is_sent() -> None:
    given = {"host": "127.0.0.1", "port": "{port}", "user": "x", "password": "given"}
    _, asking = asked(given)
    assert b"given" in asking.heard


@pytest.mark.parametrize("path", ["{private}/key", "{private}/../kept/key", "{tmp}/link"])
@pytest.mark.parametrize("setting", ["sslrootcert", "sslcert", "sslkey", "sslcrl", "passfile"])
def test_no_dsn_reads_a_file_of_noetl(tmp_path: Path, setting: str, path: str) -> None:
    private = tmp_path / "kept"
    private.mkdir()
    (private / "key").write_text(OWN)
    (tmp_path / "link").symlink_to(private / "key")
    named = path.format(private=private, tmp=tmp_path)
    dsn = "host=127.0.0.1 port={port} user=x password=y sslmode=require"
    outcome, asking = asked({"dsn": f"{dsn} {setting}={named}"}, private=(str(private),))
    assert outcome.error is not None
    assert "leads to files of NoETL itself" in outcome.error["message"]
    assert asking.calls == 0


@pytest.mark.parametrize(
    "form", ["{dsn} {name}={file}", "postgresql://x:y@127.0.0.1:{{port}}/d?{name}={file}"]
)
def test_no_dsn_has_a_file_written(tmp_path: Path, form: str) -> None:
    """Since libpq 18 one can ask for the keys of the connection, in a file of one's choice."""
    file = tmp_path / "key"
    file.write_text(OWN)
    dsn = form.format(dsn="host=127.0.0.1 port={port} user=x", name="sslkeylogfile", file=file)
    outcome, asking = asked({"dsn": dsn})
    assert outcome.error is not None
    assert (outcome.error["kind"], asking.calls) == ("auth", 0)
    assert "sslkeylogfile" in outcome.error["message"]
    assert file.read_text() == OWN
