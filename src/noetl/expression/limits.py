"""How much a template may do: counted, never timed, so that every machine decides alike (TPL-5)."""

from typing import Any, Final

from jinja2.exceptions import TemplateRuntimeError

from noetl.messages.reference import Reference

LARGEST_VALUE: Final = 10_000_000  # characters of text; containers are estimated
LARGEST_LOADED: Final = 256 * 1024**2  # bytes of JSON behind a reference, for a server to look into
LONGEST_RANGE: Final = 100_000
MOST_DIGITS: Final = 4_300
MOST_TURNS: Final = 1_000_000
DEEPEST_VALUE: Final = 100  # levels of lists and mappings, as in a document (DOC)
DEEPEST_TEMPLATE: Final = 60  # levels of brackets and conditions inside one template
LONGEST_PATH: Final = 200  # steps from a name to a value
CHARACTERS_PER_TURN: Final = 250  # working through text costs turns too; it is memory as well
NODES_PER_RUN: Final = 16  # and a run through a long block
LONGEST_STATEMENTS: Final = 65_536  # characters of a template with statements: compiling is slow
SLOWEST_TEXT: Final = 100_000  # characters for filters whose cost grows faster than their input

PLAIN_INTEGER: Final = 2**256
LARGEST_INTEGER: Final = 10**MOST_DIGITS
MOST_BITS: Final = LARGEST_INTEGER.bit_length()

WEIGHT_OF_A_NODE: Final = 8
SCALARS: Final = frozenset({int, float, bool, type(None)})
LISTS: Final = (list, tuple)


class LimitExceeded(TemplateRuntimeError):
    """A template asked for more than TPL-5 allows."""


def too_large(what: str) -> LimitExceeded:
    return LimitExceeded(f"{what} would exceed {LARGEST_VALUE:,} characters")


def weight(text: str) -> int:
    """The bytes that `text` may take: what is not ASCII can be four times as heavy."""
    return len(text) if text.isascii() else 4 * len(text)


def fits(length: int, what: str) -> int:
    """`length`, unless a value of that length may not exist."""
    if length > LARGEST_VALUE:
        raise too_large(what)
    return length


def bounded_integer(value: int) -> int:
    if -LARGEST_INTEGER < value < LARGEST_INTEGER:
        return value
    raise LimitExceeded(f"an integer would exceed {MOST_DIGITS:,} digits")


def bounded_range(*bounds: int, **named: int) -> range:
    """`range` as a template sees it."""
    if named:
        raise TypeError("range() takes no keyword arguments")
    turns = range(*bounds)
    if turns[LONGEST_RANGE:]:  # `len` of a range cannot tell what no machine could hold
        raise LimitExceeded(f"range() would exceed {LONGEST_RANGE:,} elements")
    return turns


def measure(value: Any, heavy: int) -> tuple[int, bool]:
    """
    The estimated size of a value, shared parts counted each time, with what a long number weighs;
    does it hold references?
    """
    size, references = WEIGHT_OF_A_NODE, False
    level = [value]
    for _ in range(DEEPEST_VALUE + 1):
        below: list[Any] = []
        for node in level:
            kind = type(node)
            if kind in SCALARS:
                if kind is int and not -PLAIN_INTEGER < node < PLAIN_INTEGER:
                    size += heavy
                continue
            if isinstance(node, str):
                size += len(node)
            elif kind is dict:
                size += WEIGHT_OF_A_NODE * len(node)
                size += sum(len(key) for key in node if type(key) is str)
            elif isinstance(node, LISTS):  # with what groupby yields
                size += WEIGHT_OF_A_NODE * len(node)
            elif kind is Reference:
                references = True
            if size > LARGEST_VALUE:
                raise too_large("a value")
            if kind is dict:
                below += node.values()
            elif isinstance(node, LISTS):
                below += node
        if not below:
            return size, references
        level = below
    raise LimitExceeded(f"a value is nested deeper than {DEEPEST_VALUE} levels")
