"""What was made of texts, kept while the texts have room together."""

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Remembered(Generic[T]):
    """
    Makes a thing of a text once, while the texts that were asked for last have room; no faults.

    A number of entries would be no bound: a server reads whatever text an editor sends it, and a
    tree takes some hundred bytes for each character of a template of any length.

    There are two generations, each with half of the room; when the younger is full, it takes the
    place of the older. Threads that ask at once may count one of them wrong, for as long as it is
    the younger, and need no lock.
    """

    def __init__(self, make: Callable[[str], T], room: int) -> None:
        self.make = make
        self.room = room
        """Characters."""
        self._younger: dict[str, T] = {}
        self._older: dict[str, T] = {}
        self._filled = 0

    def __call__(self, text: str) -> T:
        found = self._younger.get(text)
        if found is None:
            found = self._older.get(text)
            if found is None:
                found = self.make(text)
            self._keep(text, found)
        return found

    def _keep(self, text: str, made: T) -> None:
        half = self.room // 2
        if len(text) > half:
            return
        if self._filled + len(text) > half:
            self._older, self._younger, self._filled = self._younger, {}, 0
        self._younger[text] = made
        self._filled += len(text)

    @property
    def size(self) -> int:
        """Characters that are kept."""
        return sum(map(len, self._younger)) + sum(map(len, self._older))

    def cache_clear(self) -> None:
        self._younger, self._older, self._filled = {}, {}, 0


def remembered(room: int) -> Callable[[Callable[[str], T]], Remembered[T]]:
    """A function of a text that remembers this many characters of texts."""
    return lambda make: Remembered(make, room)
