"""What a child answers: a result in strict JSON, or what went wrong in the author's words."""

from __future__ import annotations

import sys

# The heart of `json`, whose other half brings `re` along: a third of the start of a child.
from _json import encode_basestring, make_encoder

from .frames import LONGEST
from .program import SOURCE

TYPE_CHECKING = False  # `typing` takes longer to load than all the rest
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType
    from typing import Any

ENDS = 10
"""A traceback keeps this many lines of code at either end; a deep recursion has a thousand."""
LONGEST_MESSAGE = 1_048_576
"""The worker shows less of it, with its secrets masked before: half a secret is not recognized."""
SCALARS = frozenset((str, int, float, bool, type(None)))
HINTS = {
    "bytearray": "decode it, or use base64.b64encode(...).decode()",
    "bytes": "decode it, or use base64.b64encode(...).decode()",
    "coroutine": "await it",
    "DataFrame": "use .to_dict('records')",
    "date": "use .isoformat()",
    "datetime": "use .isoformat()",
    "Decimal": "use str(...) or float(...)",
    "frozenset": "use sorted(...) or list(...)",
    "generator": "use list(...)",
    "ndarray": "use .tolist()",
    "PosixPath": "use str(...)",
    "Series": "use .to_list()",
    "set": "use sorted(...) or list(...)",
    "time": "use .isoformat()",
    "timedelta": "use .total_seconds()",
    "UUID": "use str(...)",
}
OTHERWISE = "use text, numbers, booleans, None, lists and mappings with text as keys"


def to_text(value: Any) -> str:
    """As `json.JSONEncoder(allow_nan=False, ensure_ascii=False, separators=(",", ":"))` does."""
    if isinstance(value, str):
        return str(encode_basestring(value))
    # What is around a value, what stands for no JSON, how text is written; no indent, separators,
    # unsorted, no key skipped, no NaN.
    encode = make_encoder({}, no_json, encode_basestring, None, ":", ",", False, False, False)
    return "".join(encode(value, 0))


def no_json(value: Any) -> Any:
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


class ResultRefused(Exception):
    """The result cannot be given on; `kind` is the kind of the error."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def to_json(value: Any) -> bytes:
    """The result as JSON; raises Refused where JSON has no word for it."""
    try:
        body = to_text(value).encode()
        fault = None if type(value) in SCALARS or keys_are_text(value) else find_fault(value)
    except (TypeError, ValueError, RecursionError) as refusal:
        fault = find_fault(value) or ("result", f"cannot be written as JSON: {refusal}", OTHERWISE)
    if fault:
        raise ResultRefused("result", "{} {}; {}".format(*fault))
    if len(body) > LONGEST:
        found = f"the result is {len(body)} bytes of JSON, more than {LONGEST}"
        raise ResultRefused(
            "limit", f"{found}; write it to a file or a store and return where it is"
        )
    return body


def keys_are_text(value: Any) -> bool:
    """
    Whether no key is lost as text: the encoder turns numbers into it, and two keys may become one.

    Whole numbers are text in JSON; that is said once, in the logs.
    """
    waiting, numbers = [value], False
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            if not all(isinstance(key, str) or is_number(key, part) for key in part):
                return False
            numbers = numbers or not all(isinstance(key, str) for key in part)
            part = part.values()
        elif not isinstance(part, list | tuple):
            continue
        waiting += [inner for inner in part if type(inner) not in SCALARS]
    if numbers:
        print("the result has numbers as keys; in JSON they are text", file=sys.stderr)
    return True


def is_number(key: Any, keys: dict[Any, Any]) -> bool:
    """Whether a key is a whole number that no other key has as its text."""
    return type(key) is int and str(key) not in keys


def find_fault(value: Any) -> tuple[str, str, str] | None:
    """Where the first thing stands that is no JSON, what it is, and what to do."""
    try:
        return next(faults_in(value, "result", ()), None)
    except RecursionError:
        return "result", "is nested too deeply", "flatten it"


def faults_in(value: Any, at: str, around: tuple[int, ...]) -> Iterator[tuple[str, str, str]]:
    kind = type(value).__name__
    if isinstance(value, float) and (value != value or abs(value) == float("inf")):
        yield at, f"is {value}, which JSON cannot hold", "use None or text"
    elif isinstance(value, int) and value.bit_length() > 14_000 and too_long(value):
        yield at, "is an integer of more than 4300 digits", "use text, as hex(...) makes it"
    elif isinstance(value, str):
        if not can_encode(value):
            yield at, "holds a lone surrogate, which is not a character", "decode it another way"
    elif id(value) in around:
        yield at, f"is a {kind} that contains itself", "break the circle"
    elif isinstance(value, dict):
        for key, inner in value.items():
            if not isinstance(key, str) and not is_number(key, value):
                found = f"has the key {shown(key)} of type {type(key).__name__}"
                yield at, found, "use text as keys, such as str(key)"
            elif not can_encode(str(key)):
                yield at, f"has the key {shown(key)}, which is not text", "decode it another way"
            yield from faults_in(inner, f"{at}.{key}", (*around, id(value)))
    elif isinstance(value, list | tuple):
        for index, inner in enumerate(value):
            yield from faults_in(inner, f"{at}[{index}]", (*around, id(value)))
    elif not isinstance(value, int | None):
        yield at, f"is of type {kind}, which JSON cannot hold", HINTS.get(kind, OTHERWISE)


def too_long(number: int) -> bool:
    try:
        return not str(number)
    except ValueError:
        return True


def can_encode(text: str) -> bool:
    try:
        return text.encode() is not None
    except UnicodeEncodeError:
        return False


def shown(value: Any) -> str:
    try:
        return repr(value)[:80]
    except Exception:
        return f"<{type(value).__name__}>"


def failure(fault: BaseException, text: str) -> bytes:
    """The error of an answer: kind, message, and of an exception its type and traceback."""
    if isinstance(fault, ResultRefused):
        return shape(fault.kind, str(fault), None, None)
    name = type(fault).__name__
    message = message_of(fault) + remedy_of(fault)
    return shape("python", message, name, "\n".join(told(fault, text.split("\n"))))


SCOPES = ("workload", "ctx", "iter", "args", "event", "_prev", "execution_id")
"""Names of templates, which code does not see."""


def remedy_of(fault: BaseException) -> str:
    """What to do about a name that an author may have thought was there."""
    name = getattr(fault, "name", None)
    if not isinstance(name, str):
        return ""
    if isinstance(fault, ModuleNotFoundError) and name.partition(".")[0] != "noetl":
        return f"; let the task install it: libs: [{name.partition('.')[0]}]"
    if isinstance(fault, NameError) and name in SCOPES:
        bound = '"{{ %s }}"' % (name if name in SCOPES[-2:] else f"{name}.x")
        return f"; code sees the names in the task's args: args: {{ x: {bound} }}"
    return ""


def shape(kind: str, message: str, exception_type: str | None, traceback: str | None) -> bytes:
    error = {"kind": kind, "message": message[:LONGEST_MESSAGE]}
    if exception_type:
        error |= {"exception_type": exception_type, "traceback": traceback or ""}
    return to_text(error).encode("utf-8", "replace")


def message_of(fault: BaseException) -> str:
    if isinstance(fault, SyntaxError) and fault.filename == SOURCE:
        return f"{type(fault).__name__}: {fault.msg} (line {fault.lineno})"
    try:
        says = str(fault)
    except Exception:
        says = "(its text cannot be shown)"
    return f"{type(fault).__name__}: {says}" if says else type(fault).__name__


def told(fault: BaseException, lines: list[str], depth: int = 0) -> Iterator[str]:
    """As Python tells it, of the author's lines alone, with what came before it."""
    earlier = fault.__cause__ or (None if fault.__suppress_context__ else fault.__context__)
    if earlier is not None and depth < 5:
        yield from told(earlier, lines, depth + 1)
        yield "\nthen:\n" if fault.__cause__ is None else "\nwhich caused:\n"
    yield "Traceback (most recent call last):"
    found = [(line, name) for name, line in places(fault.__traceback__)]
    if isinstance(fault, SyntaxError) and fault.filename == SOURCE:
        found.append((fault.lineno or 0, "<module>"))
    skipped = len(found) - 2 * ENDS
    for number, (line, name) in enumerate(found):
        if number == ENDS and skipped > 0:
            yield f"  … {skipped} more"
        if number < ENDS or number >= len(found) - ENDS:
            yield f'  File "{SOURCE}", line {line}, in {name}'
            yield from (f"    {text.strip()}" for text in lines[max(line - 1, 0) : line])
    yield message_of(fault)[:LONGEST_MESSAGE]


def places(trace: TracebackType | None) -> Iterator[tuple[str, int]]:
    """Function and line of each frame of the code; those of libraries and ours are left out."""
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_filename == SOURCE:
            yield code.co_name, trace.tb_lineno
        trace = trace.tb_next
