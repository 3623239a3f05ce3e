"""Somebody who uses the command line for the first time."""

from pathlib import Path

from tests.system.program import Answer, noetl


class Newcomer:
    """Somebody with a home of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.home = folder, folder / "home"

    def noetl(self, *words: str | Path, stdin: bytes = b"") -> Answer:
        return noetl(*words, stdin=stdin, NOETL_HOME=str(self.home))

    def file(self, text: str) -> Path:
        file = self.folder / "own.yaml"
        file.write_text(text)
        return file
