"""OpenQASM to circuit, in the process of a job; a fault tells where it is."""

import importlib.util
import re
import warnings
from collections.abc import Callable
from typing import Any

PLACES = (
    re.compile(r"<input>:(\d+),(\d+): "),  # OpenQASM 2
    re.compile(r"^(\d+),(\d+): "),  # OpenQASM 3, the whole language
    re.compile(r"\[no file:(\d+):(\d+)\]"),  # OpenQASM 3, Qiskit's own part of it
)
PRINTED = re.compile(r"Error: (.*)\n")
WHOLE_LANGUAGE = "qiskit_qasm3_import"
REACH = 1_048_576
"""Characters of a message that the worker gets: it shows fewer, with secrets masked before."""
PARTLY = (
    "Qiskit alone reads a part of OpenQASM 3; for the whole language install"
    " qiskit-qasm3-import (pip install qiskit-qasm3-import)"
)


class Unreadable(Exception):
    """The circuit does not parse; lines count from 1."""

    def __init__(self, message: str, line: int | None = None, column: int | None = None) -> None:
        super().__init__(message)
        self.line = line
        self.column = column


def read(circuit: str, version: int, printed: Callable[[], str]) -> Any:
    """`printed` is what came to the standard streams: one importer says its errors there."""
    return read_2(circuit) if version == 2 else read_3(circuit, printed)


def read_2(circuit: str) -> Any:
    from qiskit import qasm2

    try:
        return qasm2.loads(
            circuit, include_path=(), custom_instructions=qasm2.LEGACY_CUSTOM_INSTRUCTIONS
        )
    except qasm2.QASM2ParseError as fault:
        raise unreadable(fault.message) from None


def read_3(circuit: str, printed: Callable[[], str]) -> Any:
    from qiskit import qasm3

    whole = importlib.util.find_spec(WHOLE_LANGUAGE) is not None
    try:
        if whole:
            return qasm3.loads(circuit)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return qasm3.loads_experimental(circuit)
    except qasm3.QASM3ImporterError as fault:
        said = printed()
        if "Error:" in said:
            raise unreadable(said) from None
        if whole:
            raise unreadable(fault.message) from None
        raise Unreadable(f"{shortened(fault.message)}. {PARTLY}") from None
    except Exception as fault:  # the importer's own kind of error, known only where it is there
        raise misplaced(fault) from None


def misplaced(fault: BaseException) -> Unreadable:
    """The parser of the whole language raises an error without words; its cause has a token."""
    mismatch = (getattr(fault.__cause__, "args", None) or (None,))[0]
    token = getattr(mismatch, "offendingToken", None)
    if token is None:
        return Unreadable(shortened(str(fault)) or type(fault).__name__)
    return Unreadable(f"unexpected '{token.text}'", token.line, token.column + 1)


def unreadable(said: str) -> Unreadable:
    """The message without its place, and the place."""
    for pattern in PLACES:
        place = pattern.search(said)
        if place:
            line, column = int(place[1]), int(place[2]) + 1
            told = PRINTED.search(said)
            message = told[1] if told else said[place.end() :].strip()
            return Unreadable(shortened(message), line, column)
    return Unreadable(shortened(said))


def shortened(message: str) -> str:
    return message.strip().partition("\n")[0][:REACH]
