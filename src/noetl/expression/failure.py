"""How an error inside a template is told to a person."""

import re
from typing import Final

from jinja2.exceptions import UndefinedError

from noetl.errors import NoetlError, TemplateFailed

LONGEST_EXCERPT: Final = 200
LONGEST_REASON: Final = 2_000  # an error may quote a value of ten megabytes
NAMED: Final = re.compile(r"""^(['"])(.*)\1 is undefined$""", re.S)


def excerpt(text: str) -> str:
    """The template as a message shows it: one line, not too long."""
    return shortened(" ".join(text.split()), LONGEST_EXCERPT)


def shortened(line: str, most: int = LONGEST_REASON) -> str:
    return line if len(line) <= most else f"{line[:most]}…"


def failure(error: Exception, text: str) -> NoetlError:
    """The error of the house for whatever an evaluation raised; the cause stays attached."""
    if isinstance(error, NoetlError):
        return error
    reason = shortened(str(error)) or type(error).__name__
    if isinstance(error, ArithmeticError):  # some carry a number before their words
        reason = str(error.args[-1])
    if isinstance(error, RecursionError):
        reason = "it is nested or recurses too deeply"
    named = NAMED.match(reason) if isinstance(error, UndefinedError) else None
    remedy = "; define it or add `| default(…)`" if named else ""
    failed = TemplateFailed(
        f"template {excerpt(text)!r} failed: {reason}{remedy}",
        text=text,
        undefined=named.group(2) if named else None,
    )
    failed.__cause__ = error
    return failed
