"""Inputs that a person would not write: valid texts cut, doubled, swapped and spoilt by chance."""

from collections.abc import Callable, Sequence
from random import Random

# Words and signs that steer the parser or the templates; chance alone would rarely find them.
FRAGMENTS: tuple[bytes, ...] = (
    *(b"\n", b"\t", b"  ", b": ", b"- ", b"? ", b"| ", b"> ", b"#", b"'", b'"', b"\x00", b"\xff"),
    *(b"&a ", b"*a", b"<<: ", b"!!python/object ", b"!x ", b"---\n", b"...\n", b"%YAML 1.2\n"),
    *(b"{{ ", b" }}", b"{% ", b" %}", b"{# ", b"{{ 1", b"{% for a in b %}", b"{% endfor %}"),
    *(b"[" * 120, b"{" * 120, b"(" * 200, b"- " * 120, b"9" * 5000, b"0x", b"1e999", b".nan"),
    *(b"\xc2\x85", b"\xe2\x80\xa8", b"\xef\xbb\xbf", b"\xf0\x9f\x98\x80", b"\xed\xa0\x80"),
    *(b"step: ", b"when: ", b"else: ", b"loop: ", b"next: ", b"arcs: ", b"tool: ", b"kind: "),
    *(b"policy: ", b"rules: ", b"then: ", b"do: jump", b"in: ", b"join: ", b"from: ", b"mode: "),
    *(b"ctx.x", b"|default(", b"|attr('__class__')", b".__class__", b"range(10**9)", b"'a'*10**9"),
)


def spoilt(chance: Random, seeds: Sequence[bytes]) -> bytes:
    """One seed, changed a few times; or bytes from nowhere."""
    if chance.random() < 0.05:
        return chance.randbytes(chance.randrange(200))
    text = chance.choice(seeds)
    for _ in range(chance.randint(1, 6)):
        text = chance.choice(CHANGES)(chance, text)
    return text


def cut(chance: Random, text: bytes) -> bytes:
    start, end = ends(chance, text)
    return text[:start] + text[end:]


def double(chance: Random, text: bytes) -> bytes:
    start, end = ends(chance, text)
    return text[:end] + text[start:end] * chance.randint(1, 3) + text[end:]


def move(chance: Random, text: bytes) -> bytes:
    start, end = ends(chance, text)
    rest = text[:start] + text[end:]
    place = chance.randint(0, len(rest))
    return rest[:place] + text[start:end] + rest[place:]


def insert(chance: Random, text: bytes) -> bytes:
    place = chance.randint(0, len(text))
    return text[:place] + chance.choice(FRAGMENTS) + text[place:]


def flip(chance: Random, text: bytes) -> bytes:
    if not text:
        return text
    place = chance.randrange(len(text))
    return text[:place] + bytes([chance.randrange(256)]) + text[place + 1 :]


def swap_lines(chance: Random, text: bytes) -> bytes:
    lines = text.split(b"\n")
    one, other = chance.randrange(len(lines)), chance.randrange(len(lines))
    lines[one], lines[other] = lines[other], lines[one]
    return b"\n".join(lines)


def ends(chance: Random, text: bytes) -> tuple[int, int]:
    start = chance.randint(0, len(text))
    return start, min(len(text), start + chance.randint(0, 40))


CHANGES: tuple[Callable[[Random, bytes], bytes], ...] = (
    cut,
    double,
    move,
    insert,
    insert,
    flip,
    swap_lines,
)
