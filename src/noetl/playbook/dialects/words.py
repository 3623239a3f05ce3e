"""Words that templates of older dialects read: what each stands for where it stands (DIA)."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from noetl.messages.outcome import ERROR_KINDS
from noetl.playbook.dialects.code_tasks import args_of, code_of
from noetl.playbook.dialects.draft import Draft, respell, shown
from noetl.playbook.dialects.former_results import SQL, is_former_key, reading, source_of
from noetl.playbook.dialects.names import Read, Respelling, paths_read, reads_of, tokens_of
from noetl.playbook.dialects.places import TemplatePlace, places
from noetl.playbook.dialects.step_vars import vars_of
from noetl.playbook.dialects.tree import Mapping, TreeSlot

if TYPE_CHECKING:
    from noetl.playbook.dialects.naming import Naming

HINT: Final = "write what you mean with the names of the new result"
_JOB: Final = frozenset({"uuid", "id", "execution_id"})
_ENVELOPE: Final = frozenset({"status", "data", "error", "result", "http", "meta", "ref"})
_IS_THERE: Final = re.compile(r"\s+is\s+(?:not\s+)?(?:un)?defined\b")
_COMPARES: Final = frozenset({"==", "!=", "in", "not", "is"})  # as in `not in`
_ID: Final = "execution_id"
_AS_NUMBER: Final = re.compile(
    r"\s*\|\s*int\b|\s*\}\}'\s*(?:::\s*|as\s+)(?:bigint|int8|numeric)\b", re.IGNORECASE
)
_OK_WORDS: Final = ("success", "completed", "COMPLETED", "ok")


class AskedName(NamedTuple):
    """One name, the text that reads it, and where that stands."""

    read: Read
    slot: TreeSlot
    place: TemplatePlace
    text: str

    @property
    def path(self) -> tuple[str | int, ...]:
        return self.read.path

    @property
    def is_tested(self) -> bool:
        """Whether the text asks if the name is there."""
        return bool(_IS_THERE.match(self.text, self.read.ends[-1]))

    @property
    def is_compared(self) -> bool:
        """Whether it stands beside a sign of comparison."""
        tokens, read = tokens_of(self.text), self.read
        before, after = tokens[: read.first][-1:], tokens[read.after :][:1]
        return any(token.text in _COMPARES for token in (*before, *after))


Say = Callable[["Naming", AskedName], Respelling | None]


def _token(naming: "Naming", asked: AskedName) -> Respelling | None:
    known = {"args": "args", "execution_id": "execution_id"}
    key = str(asked.path[1]) if len(asked.path) > 1 else ""
    if key in known:
        return naming.coded("eval-names", 2, known[key])
    return naming.refuse(
        "the template reads `token`, of which only the args can be read now",
        "write args.name for what the arc carries",
    )


def _outcome(naming: "Naming", asked: AskedName) -> Respelling | None:
    step = asked.place.step
    if asked.path[1:] == ("status",) and step is not None and not asked.is_compared:
        spoken = naming.draft.spoken(step) & {"eval", "case"}
        return naming.coded("eval-status", 2, _STATUS.format("success")) if spoken else None
    is_old = asked.path[1:3] == ("py", "exception")
    return naming.coded("eval-names", 3, "outcome.py.exception_type") if is_old else None


_STATUS: Final = "('error' if outcome.status == 'error' else '{0}')"
"""A status that is no longer asked but kept: those that read it know the former word."""


def _event(naming: "Naming", asked: AskedName) -> Respelling | None:
    """The end of a loop, in the router of a step whose loop is a task now."""
    step, part = asked.place.step, str(asked.path[2]) if len(asked.path) > 2 else ""
    if step is None or not naming.is_wrapped(step) or asked.path[1:2] != ("loop",):
        return None
    said = _ENDED_LOOP.get(part)
    if said is None:
        return naming.refuse(f"a loop that is a task ends without '{part}'", HINT)
    return naming.coded("up-loop", 3, said)


_ENDED_LOOP: Final = {
    "results": "event.result",
    "failed": "0",
    **dict.fromkeys(("total", "done"), "(event.result | length)"),
}


def _job(naming: "Naming", asked: AskedName) -> Respelling | None:
    known = len(asked.path) > 1 and asked.path[1] in _JOB
    return naming.coded("up-name", 2, _id_for(asked)) if known else None


def _execution_id(naming: "Naming", asked: AskedName) -> Respelling | None:
    """It was a number; a text that is canonical already means what it says."""
    older = naming.draft.notes or naming.draft.dialects
    said = _id_for(asked) if older and len(asked.path) == 1 else _ID
    return naming.coded("up-name", 1, said) if said != _ID else None


def _id_for(asked: AskedName) -> str:
    """The execution's id, as a number where SQL or a filter wants one."""
    task, (start, end) = asked.place.task, (asked.read.start, asked.read.ends[-1])
    before, after = asked.text[:start], asked.text[end:]
    sql = task is not None and task.text("kind") in SQL and asked.slot.key in ("command", "query")
    quoted = before.count("'") % 2 == 1
    as_number = (sql and asked.read.alone and not quoted) or _AS_NUMBER.match(after)
    return f"{_ID} | bigint" if as_number else _ID


def _step(naming: "Naming", asked: AskedName) -> Respelling | None:
    return naming.coded("up-name", 1, "iter") if len(asked.path) > 1 else None


def _index(naming: "Naming", asked: AskedName) -> Respelling | None:
    return naming.coded("case-loop", 1, "iter.index") if asked.place.iterators else None


def _keychain(naming: "Naming", _: AskedName) -> Respelling | None:
    return naming.refuse(
        "a template reads a secret of the keychain, which templates never see",
        "write auth: name in the task that needs it, or read it with kind: secrets",
    )


def _vars(naming: "Naming", asked: AskedName) -> Respelling | None:
    """Variables: of the execution in the case dialect, of the step run in the eval dialect."""
    draft, key = naming.draft, str(asked.path[1]) if len(asked.path) > 1 else ""
    mixed, case = "eval" in draft.dialects, "case" in draft.dialects or bool(draft.inputs)
    if key in draft.inputs:
        written = key in draft.variables or key in naming.known.written
        both = f"(ctx.{key} | default(workload.{key}))"
        return naming.coded("up-vars", 2, both if written else f"workload.{key}")
    if case and not mixed and not key:
        return naming.coded("case-vars", 1, "ctx")
    if case and key and (key in draft.variables or not mixed):
        return naming.coded("case-vars", 2, f"ctx.{key}")
    if not key:
        return naming.refuse(
            "the template uses `vars` as a whole, and its keys now live in other scopes",
            "name the keys: vars.name",
        )
    if asked.place.step is None:
        return None
    home = vars_of(draft, asked.place.step).home(key)
    return naming.coded("eval-vars", 2, f"{home.scope}.{home.key}")


# ── what a task or a step came to ──

_AS_WHOLE: Final = {
    "rule": "{{'status': {1}, 'data': outcome.result, 'error': outcome.error}}",
    "router": "{{'status': 'error' if event.error else '{0}', 'data': event.result, "
    "'error': event.error}}",
}
_PARTS: Final[dict[str, dict[str, str]]] = {
    "rule": {"data": "outcome.result", "result": "outcome.result", "ref": "outcome.result"},
    "router": {
        "data": "event.result",
        "result": "event.result",
        "ref": "event.result",
        "error": "event.error",
        "status": "('error' if event.error else '{0}')",
    },
}


def _output(naming: "Naming", asked: AskedName) -> Respelling | None:
    """`output` is the outcome in a rule; a router sees the event instead."""
    path, place, kind = asked.path, asked.place, asked.place.kind
    if kind not in _PARTS:
        return None
    ok = _ok_word(naming.draft, asked)
    if len(path) == 1:
        as_result = kind == "rule" and asked.read.alone and _is_result(naming.draft, asked.slot)
        status = "outcome.status" if ok == "ok" else _STATUS[1:-1].format(ok)
        whole = "outcome.result" if as_result else _AS_WHOLE[kind].format(ok, status)
        return naming.coded("up-output", 1, whole)
    if kind == "rule" and path[1:3] in (("error", "status"), ("error", "status_code")):
        return naming.coded("up-output", 3, "outcome.http.status")
    if path[1:] == ("error",) and asked.is_tested:
        return naming.coded("up-output", 2, f"{_ENDED[kind]['error']}.message")
    root = _PARTS[kind].get(str(path[1]))
    if kind == "rule" and path[1:] == ("status",) and ok != "ok" and not asked.is_compared:
        return naming.coded("up-output", 2, _STATUS.format(ok))
    if root is None:
        return naming.coded("up-output", 1, "outcome" if kind == "rule" else "event")
    source = naming.own_source(place)
    if not root.endswith("result") or source is None:
        return naming.coded("up-output", 2, root.format(ok))
    if kind == "rule" and path[2:3] == ("status_code",):
        return naming.coded("up-output", 3, "outcome.http.status")
    below = reading(source, path[2:])
    if below.reason or (len(path) == 2 and source.kind in SQL):
        return naming.coded("up-output", 2, root)
    return naming.coded("up-output", 2 + below.parts, below.form.format(root))


def _ok_word(draft: Draft, asked: AskedName) -> str:
    """What a status said after a success: the word of the text, else that of the document."""
    here = asked.text.replace('"', "'")
    word = next((word for word in _OK_WORDS if f"'{word}'" in here), None)
    if word is not None or asked.is_compared or "success" not in draft.ok_words:
        return word or "ok"
    if "ok" not in draft.ok_words:
        return "success"
    draft.refuse(
        asked.slot,
        "a status is kept, which is 'ok' or 'error' now; whether it was 'success' is not known",
        "compare what is kept with 'ok'",
        code="changed-meaning",
    )
    return "ok"


def _own(naming: "Naming", asked: AskedName) -> Respelling | None:
    """`result`, `response` and `this` of a public router or rule: what has just ended."""
    word, place = str(asked.path[0]), asked.place
    source = naming.own_source(place)
    if place.kind not in _PARTS or naming.draft.case or source is None:
        return None
    if naming.known.defines(word, place) or word in naming.steps:
        return None
    part = str(asked.path[1]) if len(asked.path) > 1 else ""
    if word != "result" and (not part or part in _ENVELOPE):
        return _output(naming, asked)
    root = "outcome.result" if place.kind == "rule" else "event.result"
    root = "event.loop.results" if source.listed else root
    below = reading(source, asked.path[1:])
    if below.reason:
        return naming.refuse(below.reason, HINT)
    return naming.coded("up-output", 1 + below.parts, below.form.format(root))


def _retrying(naming: "Naming", asked: AskedName) -> Respelling | None:
    """`error`, `status_code`, `attempt`, `success` of a rule: how the task has ended."""
    word, place = str(asked.path[0]), asked.place
    if place.kind not in _PARTS or (place.task is None and place.kind == "rule"):
        return None
    if naming.known.defines(word, place) or word in naming.steps:
        return None
    if word == "error" and asked.path[1:2] in (("status",), ("status_code",)):
        known = place.kind == "rule"
        return naming.coded("up-output", 2, "outcome.http.status") if known else None
    said = _ENDED[place.kind].get(word)
    if word == "error" and asked.is_tested and len(asked.path) == 1:
        said = f"{said}.message"  # an error that is not there is null, which is defined
    return naming.coded("up-output", 1, said) if said is not None else None


_ENDED: Final[dict[str, dict[str, str]]] = {
    "rule": {
        "error": "outcome.error",
        "status_code": "outcome.http.status",
        "attempt": "_attempt",
        "success": "(outcome.status == 'ok')",
    },
    "router": {"error": "event.error", "status_code": "event.result.status"},
}


def _prev(naming: "Naming", asked: AskedName) -> Respelling | None:
    """`_prev` in the former shape of a result; alone it is a value."""
    place = asked.place
    if not place.before or place.kind != "input" or naming.draft.case:
        return None
    task = place.before[-1].node
    assert isinstance(task, Mapping)
    source = source_of(naming.draft, task)
    if source.kind not in (*SQL, "http"):
        return None
    if len(asked.path) == 1 and not _reads_former(asked):
        return None
    below = naming.below(source, asked)
    return naming.said(below, "_prev") if below.parts or below.form != "{0}" else None


def _reads_former(asked: AskedName) -> bool:
    """Whether code reads an argument by keys that only former results had."""
    task = asked.place.task
    found = code_of(task) if task is not None else None
    if task is None or found is None or asked.slot not in args_of(task).slots:
        return False
    return any(map(is_former_key, found[1].texts()))


WORDS: Final[dict[str, Say]] = {
    "token": _token,
    "outcome": _outcome,
    "event": _event,
    "job": _job,
    _ID: _execution_id,
    "step": _step,
    "loop_index": _index,
    "keychain": _keychain,
    "vars": _vars,
    "output": _output,
    "result": _own,
    "response": _own,
    "this": _own,
    **dict.fromkeys(("error", "status_code", "attempt", "success"), _retrying),
    "_prev": _prev,
}


# ── is `output` the result, or what is around it? ──


def _is_result(draft: Draft, slot: TreeSlot) -> bool:
    """Whether what `{{ output }}` is written to is read as the result itself."""
    found = draft.fact("read as", lambda: _read_as(draft)).get(slot.key or "", set())
    if found == {"result"}:
        return True
    if found == {"open"} or len(found) > 1:
        draft.refuse(
            slot,
            "`output` is the result with its status around it; here it is used as a whole, and "
            "whether the one or the other is meant is open",
            "write output.data for the result alone",
            code="changed-meaning",
        )
    return False


def _read_as(draft: Draft) -> dict[str, set[Literal["result", "envelope", "open"]]]:
    """How each name of the document is read: by keys of an envelope, by others, as a whole."""
    found: dict[str, set[Literal["result", "envelope", "open"]]] = {}
    for slot, place in places(draft):
        for path in paths_read(slot.text):
            at = 1 if path[0] in ("ctx", "iter") and len(path) > 1 else 0
            uses = found.setdefault(str(path[at]), set())
            if len(path) > at + 1:
                uses.add("envelope" if path[at + 1] in _ENVELOPE else "result")
            else:
                uses |= _uses_in_code(slot, place)
    return found


def _uses_in_code(
    slot: TreeSlot, place: TemplatePlace
) -> set[Literal["result", "envelope", "open"]]:
    code = code_of(place.task) if place.task is not None and place.kind == "input" else None
    if code is None or place.task is None or slot not in args_of(place.task).slots:
        return {"open"}
    chains = code[1].chains(slot.key or "")
    keys = {chain.keys[0] if chain.links else "" for chain in chains}
    return {"open" if not key else "envelope" if key in _ENVELOPE else "result" for key in keys}


# ── what templates cannot do here ──

# Calls that public templates make; here the same inputs always give the same value (TPL-5).
_CALLS: Final = frozenset({"now", "token", "env", "uuid", "uuid4", "random"})
_KIND: Final = re.compile(
    r"outcome\.error\.kind\s*(==|!=|not\s+in|in)\s*(\[[^\]]*\]|\([^)]*\)|'\w+'|\"\w+\")"
)
_BY_STATUS: Final = {
    "server_error": "(outcome.http.status or 0) >= 500",
    "client_error": "outcome.http.status in range(400, 500)",
    "rate_limit": "outcome.http.status == 429",
    "rate_limited": "outcome.http.status == 429",
    "auth": "outcome.error.kind == 'auth' or outcome.http.status in [401, 403]",
    "authentication": "outcome.error.kind == 'auth' or outcome.http.status in [401, 403]",
}
"""Kinds of errors that public playbooks name, and what tells them here."""


def refuse_calls(draft: Draft, slot: TreeSlot) -> None:
    """Calls inside of braces; what stands outside is SQL, or text."""
    if "(" not in (slot.text or ""):
        return
    tokens = tokens_of(slot.text or "")
    for read in reads_of(slot.text or ""):
        name = str(read.path[0])
        after = tokens[read.after].text if read.after < len(tokens) else ""
        if len(read.path) == 1 and name in _CALLS and after == "(":
            draft.refuse(
                slot,
                f"a template calls '{name}()', which templates do not have",
                "let a task find the value, or pass it with the request",
            )


def error_kinds(draft: Draft, slot: TreeSlot) -> None:
    """Kinds of errors by the names that they had."""
    old = slot.text or ""
    if "outcome.error.kind" not in old:
        return
    if respell(slot, lambda text: _KIND.sub(_by_status, text)):
        draft.tell(slot, shown(old), shown(slot.text), code="up-name")
    for match in _KIND.finditer(slot.text or ""):
        for kind in re.findall(r"\w+", match.group(2)):
            if kind not in ERROR_KINDS:
                draft.refuse(
                    slot,
                    f"no error of this runtime is of kind '{kind}', so the rule never matches",
                    "compare outcome.http.status, or outcome.error.retryable, instead",
                    code="changed-meaning",
                )


def _by_status(match: re.Match[str]) -> str:
    kinds = re.findall(r"\w+", match.group(2))
    if not set(kinds) & set(_BY_STATUS):
        return match.group(0)
    kept = [kind for kind in kinds if kind not in _BY_STATUS]
    asked = list(dict.fromkeys(_BY_STATUS[kind] for kind in kinds if kind in _BY_STATUS))
    if kept:
        asked.insert(0, f"outcome.error.kind in {kept}")
    either = f"({' or '.join(asked)})"
    return f"not {either}" if match.group(1) in ("!=",) or "not" in match.group(1) else either
