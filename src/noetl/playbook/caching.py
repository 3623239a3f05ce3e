"""Which outcomes of a playbook are kept, and what an entry is known by? (CACHE-1)"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from noetl.errors import TemplateFailed
from noetl.expression.template import compile_value
from noetl.messages.codec import encode
from noetl.messages.digest import digest_of_short
from noetl.messages.reference import Reference
from noetl.messages.references import references_in
from noetl.playbook.model import Task

if TYPE_CHECKING:
    from noetl.playbook.plan import Pipeline

LONGEST = 500
"""Characters of a key as it is kept."""
HASHED, STORED = "sha256:", "stored:"
"""How keys begin that are too long, or of values that lie outside the log."""

UNCACHED = {
    "noop": "calls nothing",
    "wait": "waits for something that is new each time",
    "secrets": "gives a secret, and secrets are never cached",
    "iterator": "runs other tasks: give those a cache",
}
"""Kinds whose outcomes are not kept, and why."""


class CachePlan(msgspec.Struct, frozen=True, kw_only=True):
    """`spec.cache` of a task, ready to be asked."""

    name: str
    """The task: its step and its label, with those of the tasks around it between."""
    key: Callable[[dict[str, Any]], Any]
    ttl: float
    fingerprint: str
    """Of what the task does: another text finds nothing that this one kept (decision 0066)."""

    def key_in(self, scope: dict[str, Any]) -> str | None:
        """
        The key as text, however long; None: this run neither looks for an outcome nor keeps its
        own.
        """
        value = self.key(scope)
        if value is None or any(one.sealed is not None for one in references_in(value)):
            return None  # a secret is no key (KEY-3)
        if value == "":
            raise TemplateFailed("`key` is empty: it says what the outcome depends on")
        return text_of(value)


def kept_as(key: str) -> str:
    """The key as it leaves the worker; what is hashed can hold a secret that nobody finds."""
    if len(key) > LONGEST:
        return f"{HASHED}{digest_of_short(key.encode())}"
    return key


def text_of(value: Any) -> str:
    """
    The value as a text that no other has: a payload that could choose the text of another one's
    value would answer for it. A text that could be one of ours is in quotes, as JSON has it.
    """
    if isinstance(value, str):
        ours = value.startswith((HASHED, STORED)) or is_json(value)
        return encode(value).decode() if ours else value
    if next(iter(references_in(value)), None) is None:
        return encode(value).decode()
    return STORED + encode(by_content(value)).decode()


def is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text, type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return False
    return True


def by_content(value: Any) -> Any:
    """
    The value, each part of it with its sort; what of it lies outside the log is named by its
    checksum, wherever it lies, and nothing else looks like that.
    """
    if isinstance(value, Reference):
        return {"r": value.checksum}
    if isinstance(value, dict):
        return {"m": {key: by_content(below) for key, below in value.items()}}
    if isinstance(value, list | tuple):
        return {"l": [by_content(below) for below in value]}
    return value


def plan_cache(task: Task, within: str, workbook: Mapping[str, Task]) -> CachePlan | None:
    """`within` names what the task stands in; it is empty for a task of the workbook."""
    cache = task.spec.cache
    if cache is None or not within or task.kind in UNCACHED:
        return None
    # What a task of the workbook does is not in the text of the task that calls it.
    called = workbook.values() if task.kind == "workbook" else ()
    return CachePlan(
        name=f"{within}.{task.label}",
        key=compile_value(cache.key),
        ttl=cache.ttl,
        fingerprint=fingerprint_of([task, *called]),
    )


def fingerprint_of(tasks: Iterable[Task]) -> str:
    written = [[task.kind, task.inputs] for task in tasks]
    text = msgspec.json.encode(written, order="deterministic", enc_hook=str)
    return digest_of_short(text)[:32]


def caches_in(pipelines: Iterable["Pipeline"]) -> Iterator[CachePlan]:
    """Of all tasks of these pipelines, and of those inside them."""
    for pipeline in pipelines:
        for task in pipeline.tasks:
            if task.cache is not None:
                yield task.cache
            if task.inner is not None:
                yield from caches_in([task.inner.pipeline])
