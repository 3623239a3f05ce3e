"""A network namespace with one line to this machine, which can be cut without a word."""

import os
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count

NOWHERE = "02:00:00:00:00:01"
"""An address of the link layer that nobody has: what is sent to it is dropped."""
_number = count(1)


def _ip(*words: str) -> str:
    """As root, which the suite is in CI."""
    told = subprocess.run(["ip", *words], check=True, capture_output=True, text=True)
    return told.stdout


class Island:
    """Its own network stack; `here` is this machine as seen from there."""

    def __init__(self) -> None:
        number = next(_number)
        name = f"{os.getpid()}-{number}"
        self.name = f"noetl-{name}"
        self._near, self._far = f"na{name}"[:15], f"nb{name}"[:15]
        net = f"10.213.{os.getpid() % 250}.{4 * number % 250 // 4 * 4}"
        stem, last = net.rsplit(".", 1)
        self.here, self.there = f"{stem}.{int(last) + 1}", f"{stem}.{int(last) + 2}"
        _ip("netns", "add", self.name)
        _ip("link", "add", self._near, "type", "veth", "peer", "name", self._far)
        _ip("link", "set", self._far, "netns", self.name)
        _ip("addr", "add", f"{self.here}/30", "dev", self._near)
        _ip("link", "set", self._near, "up")
        for words in (
            ("addr", "add", f"{self.there}/30", "dev", self._far),
            ("link", "set", self._far, "up"),
            ("link", "set", "lo", "up"),
        ):
            _ip("-n", self.name, *words)
        self._addresses = {
            here: _ip(*inside, "-br", "link", "show", device).split()[2]
            for here, inside, device in (
                (True, (), self._near),
                (False, ("-n", self.name), self._far),
            )
        }
        self.fix()

    def inside(self, words: Sequence[str]) -> list[str]:
        """The command that runs these words there."""
        return ["ip", "netns", "exec", self.name, *words]

    def cut(self) -> None:
        """Every packet is dropped, both ways, and nobody is told."""
        self._know(NOWHERE, NOWHERE)

    def fix(self) -> None:
        self._know(self._addresses[True], self._addresses[False])

    def _know(self, here: str, there: str) -> None:
        """Where either end sends what is for the other."""
        far = ("neigh", "replace", self.here, "lladdr", here, "dev", self._far)
        _ip("-n", self.name, *far, "nud", "permanent")
        near = ("neigh", "replace", self.there, "lladdr", there, "dev", self._near)
        _ip(*near, "nud", "permanent")

    def close(self) -> None:
        _ip("netns", "del", self.name)


class Weather(threading.Thread):
    """Drops all packets for a moment, again and again: loss, and the delay of what comes again."""

    def __init__(self, island: Island, bad: float, good: float) -> None:
        super().__init__(daemon=True)
        self._island, self._bad, self._good = island, bad, good
        self._over, self._began = threading.Event(), threading.Event()
        self.storms = 0

    def run(self) -> None:
        while not self._over.is_set():
            self._island.cut()
            self.storms += 1
            self._began.set()
            self._over.wait(self._bad)
            self._island.fix()
            self._over.wait(self._good)

    def __enter__(self) -> "Weather":
        """From here on there was a storm, however short what follows is."""
        self.start()
        self._began.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self.join()


@contextmanager
def an_island() -> Iterator[Island]:
    """Gone with the `with`."""
    island = Island()
    try:
        yield island
    finally:
        island.close()
