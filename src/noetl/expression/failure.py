"""How an error inside a template is told to a person."""

import re
from collections.abc import Mapping
from typing import Any, Final

from jinja2.exceptions import UndefinedError

from noetl.errors import NoetlError, TemplateFailed
from noetl.expression.lookup import NAMESPACES
from noetl.expression.meant import meant
from noetl.late import late

LONGEST_EXCERPT: Final = 200
LONGEST_REASON: Final = 2_000  # an error may quote a value of ten megabytes
MOST_COMPARED: Final = 200  # each iteration of a loop may fail
NAMED: Final = late(r"""^(['"])(.*)\1 is undefined$""", re.S)


def excerpt(text: str) -> str:
    """The template as a message shows it: one line, not too long."""
    return shortened(" ".join(text.split()), LONGEST_EXCERPT)


def shortened(line: str, most: int = LONGEST_REASON) -> str:
    if len(line) <= most:
        return line
    from noetl.messages.clipping import beginning  # a short run need not read it (decision 0070)

    return f"{beginning(line, most)}…"


def failure(error: Exception, text: str, scope: Mapping[str, Any]) -> NoetlError:
    """The error of the house for whatever an evaluation raised; the cause stays attached."""
    if isinstance(error, NoetlError):
        return error
    reason = shortened(str(error)) or type(error).__name__
    if isinstance(error, ArithmeticError):  # some carry a number before their words
        reason = str(error.args[-1])
    if isinstance(error, RecursionError):
        reason = "it is nested or recurses too deeply"
    named = NAMED.match(reason) if isinstance(error, UndefinedError) else None
    failed = TemplateFailed(
        f"template {excerpt(text)!r} failed: {reason}",
        text=text,
        undefined=named.group(2) if named else None,
        meant=_meant(named.group(2), text, scope) if named else None,
    )
    failed.__cause__ = error
    return failed


def _meant(path: str, text: str, scope: Mapping[str, Any]) -> str | None:
    """VAL-5: as validation would say it. Names of the template's own are not in the scope."""
    root, *keys = path.split(".")
    spelt = bool(keys) or re.search(rf"(?<![\w.]){re.escape(path)}(?!\w)", text)
    if "{%" in text or not spelt:
        return None
    seen = {name: value for name, value in scope.items() if name in NAMESPACES}
    return meant(root, keys, seen, MOST_COMPARED)
