"""The texts of playbooks, by digest."""

from noetl.adapters.postgres.reader import PostgresReader


class PostgresPlaybooks:
    """Playbooks; see its contract."""

    def __init__(self, reader: PostgresReader) -> None:
        self._reader = reader

    async def keep(self, digest: str, path: str, text: str, folder: str | None) -> None:
        await self._reader.write("keep_playbook", digest, path, text, folder)

    async def text(self, digest: str) -> tuple[str, str | None] | None:
        found = await self._reader.one("read_playbook", digest)
        return None if found is None else (found["text"], found["folder"])
