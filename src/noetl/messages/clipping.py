"""
What is shown of a text that is too long to be shown.

Secrets in it are masked first, whoever masks the rest later: half a secret is not recognized.
"""

from noetl.masking import KNOWN

REACH = 1_048_576
"""
Characters that are looked through for secrets. Where a program without our masking has to cut, it
cuts here: no form of a secret is as long as what lies between this and what is shown.
"""


def beginning(text: str, most: int) -> str:
    """The first characters of a text."""
    return text if len(text) <= most else KNOWN.masked(text[: most + REACH])[:most]


def ending(text: str, most: int, *, whole: bool) -> str:
    """
    The last characters of a text. Where it is not `whole`, its beginning was cut off already, and
    may be half a secret.
    """
    masked = KNOWN.masked(text)
    return (masked if whole else masked[KNOWN.longest :])[-most:]


def without_end(text: str) -> str:
    """A text whose end was cut off, without what may be half a secret."""
    masked = KNOWN.masked(text)
    return masked[: max(0, len(masked) - KNOWN.longest)]
