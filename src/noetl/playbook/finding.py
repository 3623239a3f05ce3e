"""What validation says about a document (VAL): where, what is wrong, how to fix it."""

from typing import Literal

import msgspec

Severity = Literal["error", "warning"]


class Place(msgspec.Struct, frozen=True):
    """Where something stands: the path inside the document, and line and column from 1."""

    path: str
    line: int
    column: int


class Finding(msgspec.Struct, frozen=True):
    """
    One fault of a document. The field names are the JSON contract of `noetl validate`. What is
    wrong with a request, not with its playbook, has line 0 (VAL-7).
    """

    code: str
    severity: Severity
    line: int
    column: int
    path: str
    message: str
    hint: str
