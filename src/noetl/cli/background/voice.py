"""What a server or a worker says: a line with its time on standard error, which is its log."""

import logging
import re
import time

import click

from noetl.cli.terminal import plain
from noetl.masking import KNOWN, without_password
from noetl.messages.envelope import timestamp

TIMED = re.compile(r"^\d{4}-\d\d-\d\dT[\d:.]+Z ")


def say(sentence: str) -> None:
    """One line, at once."""
    now = timestamp(int(time.time() * 1000))
    said = without_password(KNOWN.masked(sentence))
    click.echo(f"{now} {plain(said, keep=chr(10))}", err=True)


def untimed(line: str) -> str:
    """The sentence of a line of a log."""
    return TIMED.sub("", line)


class Voiced(logging.Handler):
    """Lets whatever uses `logging` speak with the same voice."""

    def emit(self, record: logging.LogRecord) -> None:
        say(self.format(record))


def listen_to_logging() -> None:
    """Warnings and worse of every library go into the log, too."""
    logging.basicConfig(level=logging.WARNING, handlers=[Voiced()], format="%(name)s: %(message)s")
