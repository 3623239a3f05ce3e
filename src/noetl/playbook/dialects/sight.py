"""
What do the names of the case dialect mean, by the place where a template stands? (DIA-S2)

The dialect gave a result two faces: `result`, the value alone, and `response` or `this`, the
envelope around it. Here the value of an http task is in `data` of its result (OUT-3), the
envelope is the outcome, and a router sees the event instead (NEXT-2).
"""

import re
from typing import Literal, NamedTuple

from noetl.playbook.dialects.names import Respelling, paths_read, respelled, revalued

Place = Literal["rule", "after", "failed", "router"]
"""A rule of the task; a task after it; a task after its failure; the router of its step."""
Path = tuple[str | int, ...]

# By kind: what of its result the dialect called `result`.
UNWRAPPED = {"http": "data", "playbook": "result"}
_RESULTS: dict[Place, str] = {
    "rule": "outcome.result",
    "after": "_prev",
    "failed": "_prev",
    "router": "event.result",
}
_ERRORS: dict[Place, str] = {
    "rule": "outcome.error",
    "after": "none",
    "failed": "iter.failure",
    "router": "event.error",
}
_ENVELOPES: dict[Place, dict[str, str]] = {
    "rule": {
        "status": "outcome.status",
        "success": "(outcome.status == 'ok')",
        "status_code": "outcome.http.status",
        "headers": "outcome.http.headers",
        "meta": "outcome.meta",
    },
    "after": {
        "status": "'success'",
        "success": "true",
        "status_code": "_prev.status",
        "headers": "_prev.headers",
    },
    "failed": {
        "status": "'error'",
        "success": "false",
        "status_code": "_prev.status",
        "headers": "_prev.headers",
    },
    "router": {
        "status": "('error' if event.error else 'success')",
        "success": "(not event.error)",
        "status_code": "event.result.status",
        "headers": "event.result.headers",
    },
}
_VALUES = ("data", "result", "body")
_STATUSES = {"success": "ok", "completed": "ok", "failed": "error"}
# An error that is not there has no message; whether it is there is asked of the error itself.
_IS_NONE = re.compile(r"\b(outcome|event)\.error\.message(\s*(?:is\s+(?:not\s+)?|[!=]=\s*)none\b)")
_LITERAL = re.compile(r"\{\{ *'(\w+)' *\}\}")


class Sight(NamedTuple):
    """How the names of the dialect are spelled at one place."""

    place: Place
    kind: str
    """Of the task that gave the result."""
    listed: bool = False
    """Whether the result is that of a loop: one value for each iteration."""
    attempts: int | None = None
    """In rules of a retry: how often it may run."""
    status_code: str | None = None
    """Where the status of an http answer is kept, if it is not at its usual place."""
    error: str | None = None
    """Where the error is kept, likewise."""

    @property
    def result(self) -> str:
        inner, whole = UNWRAPPED.get(self.kind), _RESULTS[self.place]
        if inner is None:
            return whole
        if self.listed:
            return f"(({whole} or []) | map(attribute='{inner}') | list)"
        return f"{whole}.{inner}"

    def error_of(self, path: Path) -> Respelling:
        """The first two parts of a path are an envelope and its error."""
        error = self.error or _ERRORS[self.place]
        message = f"{error}.message" if error != "none" and len(path) == 2 else error
        return Respelling(2, message)

    @property
    def whole(self) -> str:
        if self.place in ("rule", "router"):
            return "outcome" if self.place == "rule" else "event.result"
        keys = _ENVELOPES[self.place]
        error = self.error or _ERRORS[self.place]
        return f"{{'status': {keys['status']}, 'data': {self.result}, 'error': {error}}}"

    def respell(self, path: Path) -> Respelling | None:
        if path[0] in ("response", "this"):
            return self._of_envelope(path)
        if path[0] == "result" or (path[0] == "data" and self.attempts is not None):
            return Respelling(1, self.result)
        if self.attempts is None or path[0] not in self._retrying:
            return None
        if path[0] == "error" and path[1:2] in (("status",), ("status_code",)):
            return Respelling(2, "outcome.http.status")
        if path[0] == "error":
            return self.error_of(("response", *path))._replace(parts=1)
        return Respelling(1, self._retrying[str(path[0])])

    @property
    def _retrying(self) -> dict[str, str]:
        """S2 §7.3."""
        return {
            "attempt": "_attempt",
            "max_attempts": str(self.attempts),
            "status_code": "outcome.http.status",
            "success": "(outcome.status == 'ok')",
            "error": "",
        }

    def _of_envelope(self, path: Path) -> Respelling | None:
        if len(path) == 1:
            return Respelling(1, self.whole)
        key = str(path[1])
        if key in _VALUES:
            return Respelling(2, self.result)
        if key == "error":
            return self.error_of(path)
        if key == "status_code" and self.status_code is not None:
            return Respelling(2, self.status_code)
        known = _ENVELOPES[self.place].get(key)
        return None if known is None else Respelling(2, known)

    def spelled(self, text: str) -> str:
        """A template with the names that this place has for them."""
        new = _IS_NONE.sub(r"\1.error\2", respelled(text, self.respell))
        if new == text:
            return text
        literal = _LITERAL.fullmatch(new)
        return literal[1] if literal else revalued(new, ("outcome", "status"), _STATUSES)

    def unknown(self, text: str) -> str | None:
        """A name of the envelope that this place cannot see."""
        for path in paths_read(text):
            if path[0] in ("response", "this") and self.respell(path) is None:
                return ".".join(map(str, path[:2]))
        return None


def may_see(text: str) -> bool:
    """Whether a text may hold a word that a sight has; most have none."""
    return "result" in text or "response" in text or "this" in text


def unseen(name: str) -> tuple[str, str]:
    """Message and hint about a part of the envelope without counterpart."""
    return (
        f"`{name}` is not known at this place",
        "write result.… for the result, or response.status, .status_code, .data or .error",
    )
