"""
Where any of many words is in a text, in time that grows with the text and not with the words.

Most texts hold none. So a few marks are looked for first, one of which is in every word; the words
themselves are looked for near marks alone, all at once.
"""

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator

Spans = list[tuple[int, int]]

FEW = 256
"""Marks that are looked for one by one; more of them by their parts, in one pass over a text."""
PART, STRIDE = 6, 8
"""Characters of a part of a mark; the most that lie between two looks at a text."""

HEAD = 6
"""Characters by which a word is recognized; few words are shorter, and those are brief."""
LONG = 1024
"""Of longer words so much is looked for with the others, and the rest one by one where it is."""


class Marks:
    """Whether and where marks are in a text, however many there are."""

    def __init__(self, marks: Collection[str]) -> None:
        self._marks = (*sorted(marks),)  # what a look costs is the same in every process
        self._brief = self._marks
        self._passes: list[tuple[int, set[str]]] = []
        if len(marks) <= FEW:
            return
        self._brief = (*(mark for mark in self._marks if len(mark) < PART),)
        rest = {mark for mark in marks if len(mark) >= PART}
        long = {mark for mark in rest if len(mark) >= PART + STRIDE - 1}
        for some in filter(None, (long, rest - long)):
            # Of a mark that begins anywhere, one of its first parts begins where is looked.
            stride = min(STRIDE, min(map(len, some)) - PART + 1)
            parts = {mark[begin : begin + PART] for mark in some for begin in range(stride)}
            self._passes.append((stride, parts))

    def any_in(self, text: str) -> bool:
        """Whether one is in it; of many, perhaps only a part of one."""
        if any(map(text.__contains__, self._brief)):  # asked of all that is reported or printed
            return True
        return bool(self._passes) and any(
            text[end - PART : end] in parts
            for stride, parts in self._passes
            for end in range(PART, len(text) + 1, stride)
        )

    def near(self, text: str, reach: int) -> Spans:
        """The parts of a text that have a mark in them, with `reach` characters around each."""
        places = [at for mark in self._brief for at in _places(mark, text, reach)]
        for stride, parts in self._passes:
            ends = range(PART, len(text) + 1, stride)
            places += [end - PART for end in ends if text[end - PART : end] in parts]
        # The next mark of a kind is only looked for after the reach of this one, hence twice.
        return joined((max(0, at - reach), min(len(text), at + 2 * reach)) for at in places)


class Words:
    """Finds words, each of which has a mark in it."""

    def __init__(
        self, marks: Collection[str], longest: int, words: Callable[[], Iterable[str]]
    ) -> None:
        self.marks = Marks(marks)
        self._longest = longest
        self._made_of = words
        self._index: WordIndex | None = None

    def spans(self, text: str) -> Spans:
        """Where they are; those that overlap are one, so that no part of any is left over."""
        if not self.marks.any_in(text):
            return []
        return joined((at, at + len(word)) for at, word in self._near_marks(text))

    def all_in(self, text: str) -> set[str]:
        """Which words are in it, those too that are the beginning of others."""
        found: set[str] = set()
        for _, word in self.found(text):
            if word not in found:
                found.add(word)
                if self._index is not None:
                    found.update(self._index.beginnings_of(word))
        return found

    def found(self, text: str) -> Iterator[tuple[int, str]]:
        """
        Where words begin, and the longest that does. One longer than `LONG` that overlaps itself
        may be told once, and so may one that is brief.
        """
        if self.marks.any_in(text):
            yield from self._near_marks(text)

    def _near_marks(self, text: str) -> Iterator[tuple[int, str]]:
        if self._index is None:  # many secrets become known one by one, and are never met
            self._index = WordIndex(self._made_of())
        for first, last in self.marks.near(text, self._longest):
            yield from self._index.found(text, first, last)


class WordIndex:
    """Words in order: those that a text begins with lie right before it, each in the next."""

    def __init__(self, words: Iterable[str]) -> None:
        every = set(words)
        self._brief = (*(word for word in every if len(word) < HEAD),)
        self._long: dict[str, list[str]] = {}
        for word in every:
            if len(word) > LONG:
                self._long.setdefault(word[:LONG], []).append(word)
        self._whole = {word for word in every if HEAD <= len(word) <= LONG}
        self._words = sorted(self._whole | self._long.keys())
        self._within: list[int] = []
        """For each the longest other one that it begins with, or -1."""
        self._heads: dict[str, tuple[int, int, int]] = {}
        """Head → where its words begin and end, and how long the longest is."""
        around: list[int] = []
        for number, word in enumerate(self._words):
            while around and not word.startswith(self._words[around[-1]]):
                around.pop()
            self._within.append(around[-1] if around else -1)
            around.append(number)
            begin, _, longest = self._heads.get(word[:HEAD], (number, 0, 0))
            self._heads[word[:HEAD]] = (begin, number + 1, max(longest, len(word)))

    def found(self, text: str, first: int, last: int) -> Iterator[tuple[int, str]]:
        """Those in this part of a text."""
        heads, words, within = self._heads, self._words, self._within
        long: set[str] = set()
        hits = [at for at in range(first, last - HEAD + 1) if text[at : at + HEAD] in heads]
        for at in hits:
            begin, end, longest = heads[text[at : at + HEAD]]
            seen = text[at : min(at + longest, last)]
            number = bisect_right(words, seen, begin, end) - 1
            while number >= begin:
                word = words[number]
                number = within[number]
                if seen.startswith(word):
                    if word in self._long:
                        long.add(word)
                    if word in self._whole:
                        yield at, word
                        break
        for word in (*self._brief, *(word for start in long for word in self._long[start])):
            yield from ((at, word) for at in _places(word, text, len(word), first, last))

    def beginnings_of(self, word: str) -> Iterator[str]:
        """The words that this one begins with."""
        if len(word) < HEAD:
            return
        number = self._within[bisect_right(self._words, word[:LONG]) - 1]
        while number >= 0:
            if self._words[number] in self._whole:
                yield self._words[number]
            number = self._within[number]


def joined(spans: Iterable[tuple[int, int]]) -> Spans:
    """The same in order, those that overlap as one."""
    found: Spans = []
    end = 0
    for first, last in sorted(spans):
        if found and first < end:
            if last > end:
                found[-1] = (found[-1][0], end := last)
        else:
            found.append((first, end := last))
    return found


def _places(
    word: str, text: str, step: int, first: int = 0, last: int | None = None
) -> Iterator[int]:
    """Where it begins, the next one not before this many characters."""
    at = text.find(word, first, last)
    while at >= 0:
        yield at
        at = text.find(word, at + step, last)
