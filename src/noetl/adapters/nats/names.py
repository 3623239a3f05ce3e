"""How subjects, the stream and its consumers are called."""

import re
from functools import lru_cache

import msgspec

_PLAIN = re.compile(r"[A-Za-z0-9_-]")
_WRITTEN = re.compile(r"(=[0-9A-F]{2})+")


@lru_cache(maxsize=1024)
def token_of(name: str) -> str:
    """A name as one token of a subject: what NATS reserves is written as `=` and hex digits."""
    return "".join(
        letter if _PLAIN.match(letter) else "".join(f"={byte:02X}" for byte in letter.encode())
        for letter in name
    )


def named(token: str) -> str:
    """The name behind a token."""
    return _WRITTEN.sub(
        lambda found: bytes.fromhex(found[0].replace("=", "")).decode(errors="replace"), token
    )


class Names(msgspec.Struct, frozen=True):
    """All names below one root; installations that share a NATS have different roots."""

    root: str = "noetl"

    @property
    def stream(self) -> str:
        return token_of(self.root).upper()

    @property
    def any_ask(self) -> str:
        """Questions that any server can answer."""
        return f"{self.root}.any.ask"

    @property
    def any_roll(self) -> str:
        """Every server answers with its name."""
        return f"{self.root}.any.roll"

    @property
    def work(self) -> str:
        """What the stream keeps."""
        return f"{self.root}.work.*.*"

    def calls(self, server: str) -> str:
        return f"{self.root}.server.{token_of(server)}"

    def questions(self, server: str) -> str:
        return f"{self.root}.server.{token_of(server)}.ask"

    def rings(self, pool: str, server: str = "") -> str:
        """Of one server; without it: of all, as a filter."""
        return f"{self.root}.work.{token_of(pool)}.{token_of(server) if server else '*'}"

    def inbox(self, *whose: str) -> str:
        """Where answers come: `server`, `worker` and pool, `results`; users are kept to theirs."""
        return ".".join(("_INBOX", self.root, *map(token_of, whose)))

    def may_answer(self, reply: str) -> bool:
        """Whether an answer goes to a worker: else a question could make a server say anything."""
        return reply.startswith(f"{self.inbox('worker')}.")

    def nudges(self, worker: str) -> str:
        return f"{self.root}.worker.{token_of(worker)}"
