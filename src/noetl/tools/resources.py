"""`spec.resources`: how much memory and processor a task may use (TASK-11)."""

import re
from collections.abc import Mapping
from types import UnionType
from typing import Any

from noetl.tools.refusal import Refusal

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
MOST_CPUS = 1024


def refuse_others(resources: Mapping[str, Any], known: tuple[str, ...]) -> None:
    """What the kind does not know would be believed to hold."""
    strange = [name for name in resources if name not in known]
    if strange:
        says = f"spec.resources has no '{strange[0]}'; it has {', '.join(known)}"
        raise Refusal("input", says)


def bytes_of(amount: Any) -> int:
    """The bytes of `536870912`, `"512Mi"` or `"0.5G"`; the default for None."""
    if amount is None:
        return DEFAULT
    found = AMOUNT.fullmatch(str(amount).strip())
    size = int(float(found[1]) * UNITS[found[2]]) if found else 0
    if isinstance(amount, bool) or not 0 < size < 2**62:
        says = f"spec.resources.memory is {amount!r}"
        raise Refusal("input", f"{says}; expected bytes, or text such as '512Mi' or '2G'")
    return size


def memory_of(resources: Mapping[str, Any]) -> int | None:
    """In bytes; None where the task names no limit."""
    amount = resources.get("memory")
    return None if amount is None else bytes_of(amount)


def cpu_of(
    resources: Mapping[str, Any], expected: str, kinds: type | UnionType = int | float
) -> Any:
    """A number of one of the kinds; None where the task names none."""
    cpu = resources.get("cpu")
    fits = isinstance(cpu, kinds) and not isinstance(cpu, bool)
    if cpu is not None and not (fits and 0 < cpu <= MOST_CPUS):
        raise Refusal("input", f"spec.resources.cpu is {cpu!r}; expected {expected}")
    return cpu
