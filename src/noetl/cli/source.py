"""Where the text of a playbook comes from: a file, or standard input for `-`."""

import os
import sys
from codecs import BOM_UTF8
from pathlib import Path

import click
import msgspec

from noetl.errors import UnreadableFile
from noetl.late import late

# One byte more than any playbook may have (DOC-7): enough to be refused for its length, and an
# endless file such as a device costs no more than that.
READ_AT_MOST = 2 * 1024 * 1024 + 1

REASONS: dict[type[OSError], str] = {
    FileNotFoundError: "there is no such file or directory; check the path",
    IsADirectoryError: "it is a directory; name a file inside it",
    PermissionError: "permission denied; check who owns it",
    NotADirectoryError: "a part of its path is a file, not a directory; check the path",
}

# Reading and writing give their own reasons; click only completes the name.
FILE = click.Path(allow_dash=True, readable=False)

# What YAML counts as the end of a line, so that our line numbers are those of the findings.
LINE_END = late("\r\n|[\n\r\x85\u2028\u2029]")


class PlaybookSource(msgspec.Struct, frozen=True):
    """The bytes of one playbook and the name to show for it."""

    name: str
    content: bytes
    folder: Path | None = None
    """That of its file: where its relative paths begin."""

    def beside(self, name: str) -> str | None:
        """
        The text of a file that the playbook names; None where it is none, or too long. It lies
        below the playbook's folder, as when it runs: a translation shows what is in it.
        """
        from noetl.tools.paths import inside, open_file  # most playbooks name no file
        from noetl.tools.refusal import Refusal

        try:
            with open_file(inside(str(self.folder or Path.cwd()), name)) as opened:
                content = opened.read(READ_AT_MOST)
            return text_of(content) if len(content) < READ_AT_MOST else None
        except (OSError, ValueError, Refusal):
            return None

    @property
    def text(self) -> str:
        """What was read as UTF-8; UnicodeDecodeError where it is none."""
        return text_of(self.content)

    def lines(self) -> list[str]:
        return LINE_END.split(self.content.decode("utf-8-sig", errors="replace"))


def text_of(content: bytes) -> str:
    """UTF-8, without the mark that some editors put before it."""
    return content.removeprefix(BOM_UTF8).decode()


def read_source(name: str, at_most: int = READ_AT_MOST) -> PlaybookSource:
    """
    Read a file, or standard input for `-`; refuse with a sentence what cannot be read.

    `at_most` bytes of it; -1 for all.
    """
    if name == "-":
        if sys.stdin is None:
            raise UnreadableFile("cannot read standard input: it is closed")
        return PlaybookSource("<stdin>", sys.stdin.buffer.read(at_most))
    shown = os.fsencode(name).decode("utf-8", errors="replace")
    try:
        with Path(name).open("rb") as file:
            return PlaybookSource(shown, file.read(at_most), Path(name).absolute().parent)
    except (OSError, ValueError) as wrong:
        raise UnreadableFile(f"cannot read '{shown}': {reason_of(wrong)}") from None


def reason_of(wrong: OSError | ValueError) -> str:
    """Why a file could not be read or written, with what to do about it."""
    if isinstance(wrong, OSError):
        return REASONS.get(type(wrong)) or (wrong.strerror or str(wrong)).lower()
    return f"{wrong}; check the path"
