"""Who is measured, and on what work."""

import tomllib
from pathlib import Path

import msgspec

from bench.size import sized

PINS = Path(__file__).with_name("peers.toml")
OURS = ("noetl-noop", "noetl-python")


class Peer(msgspec.Struct, frozen=True, kw_only=True):
    """One row of `peers.toml`."""

    name: str
    title: str
    durable: str
    isolated: str
    packages: list[str] = []
    program: str = ""
    """A module of `bench.peers.programs`, if it is not called as the peer."""
    environment: str = ""
    """The folder it is installed into, if it is not called as the peer."""
    service: str = ""
    address: str = ""
    """What its program is told where no service has an address."""

    @property
    def module(self) -> str:
        return f"bench.peers.programs.{self.program or self.name}"

    @property
    def ours(self) -> bool:
        return self.name in OURS


class Work(msgspec.Struct, frozen=True):
    """The same for everybody."""

    name: str
    title: str
    count: int
    unit: str
    at_most: bool
    """Whether less is better."""
    bound: float
    """Seconds after which it is stopped; what was done until then is the figure."""

    def value(self, seconds: float, done: int) -> float:
        """The figure in its unit."""
        if self.unit.endswith("/s"):
            return done / seconds
        if self.unit == "ms/step":
            return 1000 * seconds / done
        if self.unit == "ms":
            return 1000 * seconds
        return seconds * self.count / done if self.name == "W4" else seconds


WORKS = {
    work.name: work
    for work in (
        Work("W1", "a chain of 200 steps", sized(200), "ms/step", True, 30.0),
        Work("W2", "1,000 tasks, 100 at once, and a join", sized(1_000), "tasks/s", False, 30.0),
        Work("W3", "300 workflows of 5 steps at once", sized(300), "steps/s", False, 30.0),
        Work("W4", "40 tasks of fibonacci(10)", sized(40), "s", True, 30.0),
        Work("W5", "from the start of the process to the first step", 1, "s", True, 60.0),
        Work("W6", "memory of all its processes after the chain", 0, "MB", True, 0.0),
        Work("W7", "one workflow of 10,000 steps", sized(10_000), "ms/step", True, 45.0),
        Work("W8", "to read back 1,000,000 events", sized(1_000_000), "s", True, 90.0),
        Work("W9", "one step beside 10,000 blocked workflows", sized(10_000), "ms", True, 60.0),
    )
}
WITHOUT = {
    "W8": {
        "dbos": "a workflow of as many steps takes more than its bound to write",
        "dbos-postgres": "a workflow of as many steps takes more than its bound to write",
        "temporal": "a history may have 51,200 events",
        "burr": "it keeps states, not events: it reads the last one, whatever was before",
    },
    "W9": {"burr": "a blocked workflow is a row that nobody looks at"},
}
"""Why a peer has no figure where that says something; for others it has no such thing."""
AIRFLOW = ("W4", "W5", "W6")
"""A task takes about a second there: W4 says all that the others would."""
NONE = {"W8": "no history that is read back", "W9": "no workflow that waits for a signal"}


def peers() -> dict[str, Peer]:
    rows = tomllib.loads(PINS.read_text("utf-8"))
    return {name: msgspec.convert({"name": name, **row}, Peer) for name, row in rows.items()}


def reason_without(peer: Peer, work: str) -> str | None:
    """Why this peer is not asked for this work; None if it is."""
    if peer.name == "airflow" and work not in AIRFLOW:
        return "a process for each task: W4 says how long one takes"
    if work not in NONE or peer.ours or (work == "W9" and peer.name in WAITING):
        return None
    return WITHOUT[work].get(peer.name, NONE[work])


WAITING = ("dbos", "dbos-postgres", "temporal", "spiff")
"""Who has workflows that wait for something from outside."""


class Result(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line of `latest.jsonl`: a figure with what it is worth, or why there is none."""

    peer: str
    title: str
    work: str
    unit: str
    durable: str
    isolated: str
    value: float | None = None
    ratio: float | None = None
    """How much better ours (python) is: above 1 ours is ahead, below 1 the peer is."""
    note: str = ""
    reason: str = ""
