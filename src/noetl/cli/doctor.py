"""`noetl doctor`: every setting with where it comes from, and whether what it needs is there."""

import asyncio
import os
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import click
import msgspec

from noetl import __version__
from noetl.adapters.sqlite.locks import FILE
from noetl.cli import exits
from noetl.cli.background.launch import used_by
from noetl.cli.contexts import Target, target_in
from noetl.cli.output import JSON, tell
from noetl.cli.running.words import count
from noetl.cli.terminal import Paint, Tone, wants_colour
from noetl.errors import NoetlError
from noetl.extras import EXTRAS, command_for, is_installed, needs
from noetl.masking import without_password
from noetl.node.pid_file import FOLDER as RUN
from noetl.node.pid_file import PidFile
from noetl.ports.credentials import SealedCredential
from noetl.private import OTHERS, open_to_others
from noetl.settings import SETTINGS, Reading, Settings, read_with_origins, shown

EPILOG = """\b
Examples:
  noetl doctor
  noetl doctor --json
  noetl doctor --server http://127.0.0.1:8765

\b
Exit codes: 0 everything works, 1 something that is set cannot be used.
"""
PATIENCE = 5.0
SKEW = 5.0
"""Seconds by which two clocks may differ before it is worth a word."""

GREETINGS = {"nats": (4222, b"INFO"), "tls": (4222, b"INFO"), "ws": (80, b""), "wss": (443, b"")}
"""Scheme of a queue → its usual port, and how it greets whoever connects, if it does."""

State = Literal["ok", "absent", "failed"]
TONES: dict[State, Tone] = {"ok": "good", "absent": "note", "failed": "error"}


class Check(msgspec.Struct, frozen=True):
    """One thing that was looked at. `absent` is no fault: it is not set, or not installed."""

    name: str
    state: State
    says: str


@click.command(epilog=EPILOG)
@click.option("--server", metavar="URL", help="Also check this server (NOETL_SERVER).")
@click.option("--context", metavar="NAME", help="Also check the server of this context.")
@JSON
def doctor(server: str | None, context: str | None, as_json: bool) -> int:
    """
    Print every setting with its value and origin, and check the installation.

    Checks home, database, key, queue, server, clock, isolation and extras; secrets are masked.
    """
    reading = read_with_origins(flags={"server": server, "context": context}, looking=True)
    checks = checks_of(reading.settings, target_in(reading))
    if reading.refused is not None:
        checks.insert(0, Check("settings", "failed", reading.refused))
    facts = {"version": __version__, "settings": settings_of(reading), "checks": checks}
    tell(facts, *lines_of(reading, checks), as_json=as_json)
    failed = any(check.state == "failed" for check in checks)
    return exits.FAILED if failed else exits.OK


def settings_of(reading: Reading) -> list[dict[str, object]]:
    return [
        {
            "setting": field,
            "value": shown(field, getattr(reading.settings, field)),
            "origin": reading.origins[field],
        }
        for field in SETTINGS
    ]


def lines_of(reading: Reading, checks: list[Check]) -> Iterator[str]:
    paint = Paint(wants_colour())
    yield f"noetl {__version__}"
    for row in settings_of(reading):
        value = "-" if row["value"] is None else row["value"]
        yield f"  {row['setting']:<15} {value!s:<40} {row['origin']}"
    for check in checks:
        yield f"{paint(TONES[check.state], f'{check.state:<7}')} {check.name}: {check.says}"


def checks_of(settings: Settings, target: Target) -> list[Check]:
    """Everything that can be looked at; a fault of one does not hide the others."""
    looks: dict[str, Callable[[], Check]] = {
        "home": lambda: home(settings),
        "server here": lambda: server_here(settings),
        "database": lambda: database(settings),
        "key": lambda: key(settings),
        "queue": lambda: queue(settings),
        "server": lambda: server_of(target),
        "clock": lambda: clock(settings),
        "isolation": lambda: isolation(settings),
    }
    return [looked(name, look) for name, look in looks.items()] + [extras()]


def looked(name: str, look: Callable[[], Check]) -> Check:
    try:
        found = look()
    except (NoetlError, OSError) as wrong:
        found = Check(name, "failed", str(wrong))
    return msgspec.structs.replace(found, says=without_password(found.says))


def home(settings: Settings) -> Check:
    folder = settings.home
    if not folder.exists():
        return Check("home", "ok", f"{folder} will be made when something runs")
    with tempfile.TemporaryFile(dir=folder):
        pass
    shown_to_all = [path for path in kept_in(folder) if open_to_others(path)]
    if shown_to_all:
        names = ", ".join(str(path) for path in shown_to_all[:5])
        return Check("home", "failed", f"others may read {names}; run `chmod -R go= {folder}`")
    free = os.statvfs(folder)
    room = free.f_bavail * free.f_frsize / 2**30
    return Check("home", "ok", f"{folder} can be written, {room:.1f} GiB are free")


def server_here(settings: Settings) -> Check:
    """What the server that runs on the home works with: not what this shell would start."""
    running = PidFile(settings.home, "server").running()
    if running is None:
        return Check("server here", "absent", f"none runs on {settings.home}")
    uses = ", ".join(f"{name} {value}" for name, value in running.uses.items())
    told = f"{running.url or 'it starts'}, process {running.pid}{uses and ': '}{uses}"
    mine = used_by(settings)
    others = [name for name, value in running.uses.items() if mine.get(name, value) != value]
    if others:
        told += f"; the settings here say otherwise: {', '.join(f'{n} {mine[n]}' for n in others)}"
    return Check("server here", "ok", told)


def kept_in(home: Path) -> Iterator[Path]:
    """The home; where others can pass, also what lies in it, and in `run`."""
    yield home
    if not home.stat().st_mode & OTHERS:
        return  # nobody else gets at what is in it
    for folder in (home, home / RUN):
        yield from sorted(folder.glob("*"))


def database(settings: Settings) -> Check:
    if settings.db is not None:
        version, _ = asyncio.run(asked_postgres(settings.db))
        return Check("database", "ok", f"PostgreSQL {version} at {shown('db', settings.db)}")
    if not (settings.home / FILE).exists():
        return Check("database", "ok", "SQLite in the home, made when something runs")
    from noetl.adapters.sqlite.database import open_database

    open_database(settings.home).close()
    return Check("database", "ok", f"SQLite in {settings.home / FILE}")


def key(settings: Settings) -> Check:
    """Whether the key at hand opens what is sealed in the home or the database."""
    from noetl.keychain.keys import KeySource
    from noetl.keychain.store import what_of

    if settings.db is not None:
        asyncio.run(asked_postgres(settings.db))  # one that is away is not waited for here
    rows = asyncio.run(sealed_rows(settings))
    if not rows:
        return Check("key", "absent", "nothing is stored encrypted yet")
    keys = KeySource(settings.home)
    closed = [row for row in rows if keys.absent or row.key_id not in keys.ring]
    if closed:
        return Check(
            "key",
            "failed",
            f"no available key decrypts {what_of(closed)}: set the right one (NOETL_KEY, "
            "NOETL_KEY_FILE, or `key` in the home), or see `noetl credential rotate --help`",
        )
    return Check("key", "ok", f"it decrypts all {len(rows)} stored entries")


async def sealed_rows(settings: Settings) -> list[SealedCredential]:
    """Of everything that the key serves: the home, and the database that is set."""
    from noetl.node.opening import open_settings_storage

    places = {None, settings.db} if (settings.home / FILE).exists() else {settings.db} - {None}
    rows: list[SealedCredential] = []
    for db in places:
        place = msgspec.structs.replace(settings, db=db)
        storage = await open_settings_storage(place, lambda _: None, looking=True)
        try:
            rows += await storage.credentials.all()
        finally:
            await storage.close()
    return rows


async def asked_postgres(url: str) -> tuple[str, float]:
    """Its version, and how far its clock is ahead of ours, in seconds."""
    if not is_installed("postgres"):
        raise NoetlError(needs("a database (NOETL_DB)", "postgres"))
    import asyncpg

    try:
        connection = await asyncpg.connect(url, timeout=PATIENCE)
        try:
            before = time.time()
            row = await connection.fetchrow(
                "select current_setting('server_version') as v, "
                "extract(epoch from clock_timestamp())::float8 as at"
            )
            return str(row["v"]), float(row["at"]) - (before + time.time()) / 2
        finally:
            await connection.close()
    except (asyncpg.PostgresError, OSError, TimeoutError, ValueError) as wrong:
        bad = isinstance(wrong, ValueError)  # quotes pieces of the address
        why = "it is not an address" if bad else str(wrong) or "no answer"
        raise NoetlError(f"{shown('db', url)} cannot be used: {why}; check NOETL_DB") from None


def queue(settings: Settings) -> Check:
    if settings.queue is None:
        return Check("queue", "absent", "none is set; workers ask the server itself")
    parts = urlsplit(settings.queue)
    port, greeting = GREETINGS.get(parts.scheme, (4222, b""))
    where = parts.hostname or "127.0.0.1", parts.port or port
    try:
        with socket.create_connection(where, PATIENCE) as peer:
            peer.settimeout(PATIENCE)
            greeted = peer.recv(len(greeting)) if greeting else b""
    except OSError as wrong:
        url = shown("queue", settings.queue)
        raise NoetlError(f"{url} does not answer: {wrong}; check NOETL_QUEUE") from None
    if greeted != greeting:
        return Check("queue", "failed", f"{where[0]}:{where[1]} answers, but is not a NATS server")
    return Check("queue", "ok", f"NATS at {shown('queue', settings.queue)}")


def server_of(target: Target) -> Check:
    if target.url is None:
        return Check("server", "absent", "none is set; commands work on the home")
    from noetl.client.client import Client

    with Client(target.url, target.token) as client:
        health = client.ready()
        runtime = client.runtime()
    workers = sum(pool.workers for pool in runtime.pools)
    state: State = "ok" if health.status == "ok" else "failed"
    told = f"{target.url} runs {runtime.version} with {count(workers, 'worker')}"
    return Check("server", state, told if state == "ok" else f"{target.url} is not ready")


def clock(settings: Settings) -> Check:
    if settings.db is not None:
        _, ahead = asyncio.run(asked_postgres(settings.db))
        word = f"{abs(ahead):.1f} s {'behind' if ahead > 0 else 'ahead of'} the database's"
        state: State = "ok" if abs(ahead) <= SKEW else "failed"
        return Check("clock", state, word)
    year = time.gmtime().tm_year
    if year < 2024:
        return Check("clock", "failed", f"it says {year}; ids and times come out wrong: set it")
    return Check("clock", "ok", time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()))


def isolation(settings: Settings) -> Check:
    """What keeps tasks of a worker on this machine from NoETL itself (trust model)."""
    from noetl.tools.process.inside.landlock import version
    from noetl.tools.process.inside.namespaces import allowed, flags_here
    from noetl.tools.process.inside.program_files import program_folders

    if settings.namespaces == "off":
        return Check(
            "isolation", "absent", "turned off: tasks can read files of NoETL (NOETL_NAMESPACES)"
        )
    if allowed(flags_here(), [], []):
        return Check("isolation", "ok", "each task gets its own namespaces")
    if version() > 0:
        says = f"no namespaces; Landlock {version()} bounds tasks"
        changed = program_folders()
        if changed:
            says += f", but they can change the program in {', '.join(changed)}: install it as root"
        return Check("isolation", "absent" if changed else "ok", says)
    state: State = "failed" if settings.namespaces == "demand" else "absent"
    return Check(
        "isolation", state, "neither namespaces nor Landlock: tasks can read files of NoETL"
    )


def extras() -> Check:
    found = [extra for extra in EXTRAS if is_installed(extra)]
    absent = [extra for extra in EXTRAS if extra not in found]
    says = f"installed: {', '.join(found) or 'none'}"
    if absent:
        says += f"; not: {', '.join(absent)} ({command_for('NAME')})"
    return Check("extras", "ok", says)
