"""How much memory a task may use: `spec.resources.memory` as a number of bytes."""

import re
from typing import Any

DEFAULT = 2 * 1024**3
UNITS = {
    "": 1,
    "k": 1_000,
    "M": 1_000**2,
    "G": 1_000**3,
    "T": 1_000**4,
    "Ki": 1024,
    "Mi": 1024**2,
    "Gi": 1024**3,
    "Ti": 1024**4,
}
AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*(|k|M|G|T|Ki|Mi|Gi|Ti)B?")


class NoAmount(ValueError):
    """The text is no amount of memory; the message says what was found and expected."""


def bytes_of(amount: Any) -> int:
    """The bytes of `536870912`, `"512Mi"` or `"0.5G"`; the default for None."""
    if amount is None:
        return DEFAULT
    found = AMOUNT.fullmatch(str(amount).strip())
    size = int(float(found[1]) * UNITS[found[2]]) if found else 0
    if isinstance(amount, bool) or not 0 < size < 2**62:
        raise NoAmount(
            f"spec.resources.memory is {amount!r}; expected bytes, or text such as '512Mi' or '2G'"
        )
    return size
