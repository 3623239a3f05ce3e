"""What a seed comes to: how many nodes, which playbooks, which faults and orders, and when."""

from random import Random
from typing import Any, NamedTuple

import msgspec

SPANS = (4.0, 9.0, 20.0)
"""Seconds in which executions are started and faults happen."""
CHANCES = ("lost", "doubled", "delayed", "deaf", "latency")
"""What befalls single messages and writes; each can be turned off."""


class Happening(NamedTuple):
    """A fault or an order, at its time."""

    at: float
    kind: str
    who: float
    """Which of those there are, as a part of all of them."""
    seconds: float
    """How long it lasts."""


FAULTS = {
    "kill_server": 3,
    "kill_worker": 4,
    "pause_server": 3,
    "pause_worker": 3,
    "drain_worker": 2,
    "set_clock": 2,
    "cut": 3,
    "disk_away": 2,
    "disk_cut": 4,
    "disk_full": 1,
    "bucket_away": 1,
    "bucket_full": 1,
    "storm": 2,
}
ORDERS = {"cancel": 2, "pause": 3, "resume": 3, "signal": 4, "answer": 4, "restart": 3, "look": 1}


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """A seed, and what was taken away from it to make it smaller."""

    seed: int
    size: int | None = None
    """Steps of a playbook at the most; None: as the seed says."""
    executions: int | None = None
    without: tuple[int, ...] = ()
    """Numbers of happenings that do not happen."""
    calm: tuple[str, ...] = ()
    """Chances that are turned off."""

    def chance(self, part: str) -> Random:
        """Each part has its own: taking one away does not change the others."""
        return Random(f"{self.seed}/{part}")

    def options(self) -> str:
        said = [f"--seed {self.seed}"]
        if self.size is not None:
            said.append(f"--size {self.size}")
        if self.executions is not None:
            said.append(f"--executions {self.executions}")
        if self.without:
            said.append(f"--without {','.join(map(str, self.without))}")
        if self.calm:
            said.append(f"--calm {','.join(self.calm)}")
        return " ".join(said)


class Setup(NamedTuple):
    """What a scenario says, drawn."""

    span: float
    servers: int
    workers: int
    lease: float
    run_ahead: bool
    concurrency: int
    playbooks: int
    size: int
    executions: int
    every: int
    """Seconds between two starts by a schedule; 0: there is none."""
    overlap: str
    pool: int
    """Parts that run at once in the pool; 0: as many as there is room for."""
    chances: dict[str, float]
    happenings: list[Happening]


def drawn(scenario: Scenario) -> Setup:
    chance = scenario.chance("setup")
    span = chance.choice(SPANS)
    size, executions = chance.randint(1, 5), chance.randint(1, 7)
    setup = Setup(
        span=span,
        servers=chance.choice((1, 2, 2, 3)),
        workers=chance.choice((1, 2, 2, 3)),
        lease=chance.choice((1.0, 2.0, 4.0, 15.0)),
        run_ahead=chance.random() < 0.8,
        concurrency=chance.choice((1, 1, 2, 100)),
        playbooks=chance.randint(1, 3),
        size=size if scenario.size is None else scenario.size,
        executions=executions if scenario.executions is None else scenario.executions,
        every=chance.choice((0, 0, 0, 0, 3)),
        overlap=chance.choice(("allow", "skip", "queue", "cancel_old")),
        pool=chance.choice((0, 0, 0, 0, 1, 2)),
        chances={name: _likely(chance, name) for name in CHANCES},
        happenings=[],
    )
    for name in scenario.calm:
        setup.chances[name] = 0.0
    setup.happenings.extend(_happenings(scenario, span))
    return setup


def _likely(chance: Random, name: str) -> float:
    """Many seeds have a quiet network and disk: what they find is easier to read."""
    likely: dict[str, Any] = {
        "lost": (0.0, 0.0, 0.02, 0.2),
        "doubled": (0.0, 0.0, 0.05, 0.5),
        "delayed": (0.0, 0.0, 0.03, 0.2),
        "deaf": (0.0, 0.0, 0.01, 0.05),
        "latency": (0.002, 0.002, 0.02, 0.3),
    }
    return float(chance.choice(likely[name]))


def _happenings(scenario: Scenario, span: float) -> list[Happening]:
    chance = scenario.chance("happenings")
    found = []
    for table, most in ((FAULTS, 12), (ORDERS, 8)):
        for _ in range(chance.randint(0, most)):
            (kind,) = chance.choices(list(table), list(table.values()))
            seconds = chance.choice((0.2, 1.0, 3.0, 8.0, 25.0)) * (0.5 + chance.random())
            found.append(Happening(chance.random() * span, kind, chance.random(), seconds))
    found.sort()
    return [one for number, one in enumerate(found) if number not in scenario.without]
