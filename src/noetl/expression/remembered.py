"""What was made of texts, kept while the texts have room together."""

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Generic, TypeVar

T = TypeVar("T")


class Remembered(Generic[T]):
    """
    Makes a thing of a text once, while the texts that were asked for last have room; no faults.

    A number of entries would be no bound: a server reads whatever text an editor sends it, and a
    tree takes some hundred bytes for each character of a template of any length.
    """

    def __init__(self, make: Callable[[str], T], room: int) -> None:
        self.make = make
        self.room = room
        """Characters."""
        self.size = 0
        self._kept: OrderedDict[str, T] = OrderedDict()
        self._lock = Lock()  # texts are read in threads

    def __call__(self, text: str) -> T:
        try:
            found = self._kept[text]
            self._kept.move_to_end(text)
            return found
        except KeyError:  # never there, or gone meanwhile
            made = self.make(text)
        with self._lock:
            if text not in self._kept:
                self._kept[text] = made
                self.size += len(text)
            while self.size > self.room:
                self.size -= len(self._kept.popitem(last=False)[0])
        return made

    def cache_clear(self) -> None:
        with self._lock:
            self._kept.clear()
            self.size = 0


def remembered(room: int) -> Callable[[Callable[[str], T]], Remembered[T]]:
    """A function of a text that remembers this many characters of texts."""
    return lambda make: Remembered(make, room)
