"""The words of tasks in public playbooks: inputs in other places, and by other names (DIA-UP)."""

import base64
from typing import Final, NamedTuple

from noetl.expression.syntax import is_template
from noetl.kinds.table import KINDS
from noetl.playbook.blocks import ITERATOR_SPEC, TASK_SPEC
from noetl.playbook.dialects.draft import Draft
from noetl.playbook.dialects.tree import Mapping, Node, Scalar, Sequence, TreeSlot, node_of

_SPEC_KEYS: Final = frozenset((*TASK_SPEC.fields, *ITERATOR_SPEC.fields, "eval", "retry"))
TAKES_ARGS: Final = frozenset({"python", "playbook", "workbook"})
_SQL: Final = ("postgres", "duckdb", "snowflake")


class Word(NamedTuple):
    """An input's former name, and the first of its present names that is free."""

    old: str
    new: str


_ARGS: Final = tuple(Word(old, "args") for old in ("input", "inputs", "payload", "with", "data"))
WORDS: Final[dict[str, tuple[Word, ...]]] = {
    "http": (
        Word("endpoint", "url"),
        Word("uri", "url"),
        Word("payload", "body"),
        Word("json", "body"),
        Word("data", "body"),
        Word("query", "params"),
        Word("credential", "auth"),
    ),
    "python": _ARGS,
    "playbook": _ARGS,
    "workbook": (*_ARGS, Word("task", "name")),
    **dict.fromkeys(
        _SQL, (Word("sql", "command"), Word("statement", "command"), Word("credential", "auth"))
    ),
}
_ENCODED: Final = {"code_b64": "code", "command_b64": "command"}
_HELD: Final = {"python": "code", **dict.fromkeys(_SQL, "command")}
"""By kind: the input that holds its text."""
_INLINE: Final = ("code", "content", "inline", "text", "command")
_CHECKS: Final = ("verify_ssl", "verify", "ssl_verify")
_TYPE, _FORM = "content-type", "x-www-form-urlencoded"
_NOTED: Final = frozenset({"desc", "description", "title"})
_NOTED_OF: Final = {"playbook": frozenset({"task"})}


def kind_of_task(draft: Draft, task: Mapping) -> None:
    """`type` → `kind`."""
    slot = task.slot("type")
    if slot is not None and "kind" not in task and slot.text in KINDS:
        task.rename("type", "kind")
        draft.tell(slot, "type", "kind")


def inputs_of_spec(draft: Draft, task: Mapping) -> None:
    """Inputs below `spec` stand beside `kind`."""
    spec, kind = task.mapping("spec"), task.text("kind")
    if spec is None or kind not in KINDS:
        return
    at = task.place("spec")
    for slot in [slot for slot in spec.slots if slot.key not in _SPEC_KEYS]:
        if slot.key is None or slot.key in task:
            continue
        spec.slots.remove(slot)
        task.slots.insert(at, slot)
        at += 1
        task.flow = False
        draft.tell(slot, f"spec.{slot.key}", slot.key)
    if not spec.slots:
        task.pop("spec")


def words_of_task(draft: Draft, task: Mapping) -> None:
    """Former names of inputs."""
    kind = task.text("kind") or ""
    for word in WORDS.get(kind, ()):
        slot = task.slot(word.old)
        if slot is None or (word.new in task and word.new != "args"):
            continue
        if word.new == "args" and "args" in task:
            _join_args(draft, task, slot)
        else:
            new = "form" if word.new == "body" and _sends_form(task) else word.new
            task.rename(word.old, new)
            draft.tell(slot, word.old, new)
    _texts_of_task(draft, task, kind)
    for key in sorted((_NOTED | _NOTED_OF.get(kind, _NOTED)) & set(task.keys())):
        noted = task.pop(key)
        if noted is not None:
            draft.tell(noted, f"{key} of a task", "removed: it said nothing to the runtime")


def _texts_of_task(draft: Draft, task: Mapping, kind: str) -> None:
    """Code and commands in other wrappings: encoded, in a script, as a list."""
    for old, new in _ENCODED.items():
        slot = task.slot(old)
        text = _decoded(slot.text) if slot is not None and new not in task else None
        if slot is not None and text is not None:
            task.rename(old, new)
            slot.node = block_text(text, slot.line)
            draft.tell(slot, old, new)
    script = task.slot("script")
    if script is not None and script.text:
        word = "uri" if script.text.endswith((".py", ".sql")) else "content"
        script.node = node_of({word: script.node}, script.line)
    if script is not None and isinstance(script.node, Mapping):
        _text_of_script(draft, task, script, script.node)
    commands = task.slot("commands") if kind in _SQL and "command" not in task else None
    if commands is not None:
        listed = commands.node.slots if isinstance(commands.node, Sequence) else [commands]
        texts = [one.text for one in listed]
        if all(texts):
            task.rename("commands", "command")
            if isinstance(commands.node, Sequence):
                whole = "\n".join(f"{(text or '').strip().rstrip(';')};" for text in texts)
                commands.node = block_text(whole + "\n", commands.line)
            draft.tell(commands, "commands", "command")


def _text_of_script(draft: Draft, task: Mapping, script: TreeSlot, inside: Mapping) -> None:
    """`script: { uri, source, content }`: its own text, or that of a file beside the playbook."""
    kind, uri = task.text("kind") or "", inside.text("uri")
    new = _HELD.get(kind)
    word = next((one for one in _INLINE if inside.text(one)), None)
    if kind == "script" and uri is not None and "path" not in task:
        task.rename("script", "path")
        script.node = node_of(uri, script.line)
        draft.tell(script, "script.uri", "path")
    elif new is None or new in task:
        return
    elif word is not None:
        task.rename("script", new)
        script.node = inside.node(word) or script.node
        draft.tell(script, f"script.{word}", new)
    elif uri is not None:
        text = _fetched(draft, script, inside, uri, new)
        if text is not None:
            task.rename("script", new)
            task.flow = False
            script.node = block_text(text, script.line)
            draft.tell(script, f"script: {uri}", new)


def _fetched(draft: Draft, script: TreeSlot, inside: Mapping, uri: str, new: str) -> str | None:
    """The text of a script's file; elsewhere it is not known what runs."""
    source = inside.mapping("source") or Mapping()
    beside = (source.text("type") or "file") == "file" and "{{" not in uri
    path = uri.removeprefix("file://")
    text = draft.read(path) if beside and "://" not in path and draft.read is not None else None
    if text is not None and is_template(text):
        said = (f"'{path}' holds braces, which a task would read as a template", "write { { apart")
    elif text is not None:
        return text
    elif beside and "://" not in path:
        said = (
            f"the script '{path}' is not beside the playbook, or cannot be read from here",
            f"migrate where the file is, or write its text into {new}: |",
        )
    else:
        said = (
            "a script that is fetched when the task runs has no counterpart",
            f"write its text into {new}: |, or fetch it beside the playbook and name that file",
        )
    draft.refuse(script, *said)
    return None


def _decoded(text: str | None) -> str | None:
    try:
        return base64.b64decode((text or "").strip(), validate=True).decode()
    except (ValueError, UnicodeDecodeError):
        return None


def _sends_form(task: Mapping) -> bool:
    """Whether the headers say that the body is a form."""
    headers = task.mapping("headers") or Mapping()
    types = [slot.text or "" for slot in headers.slots if (slot.key or "").lower() == _TYPE]
    return any(_FORM in text for text in types)


def _join_args(draft: Draft, task: Mapping, slot: TreeSlot) -> None:
    """Two words for the same: the later one's keys are added."""
    args = task.mapping("args")
    if args is None or not isinstance(slot.node, Mapping):
        return
    task.pop(slot.key or "")
    for one in slot.node.slots:
        if (one.key or "") not in args:
            args.slots.append(one)
    args.flow = False
    draft.tell(slot, slot.key or "", "args", now=task.slot("args"))


def settings_of_task(draft: Draft, task: Mapping) -> None:
    """A timeout beside `kind` is a knob; `auth` is a name; `cmds` is one command."""
    if task.text("kind") not in KINDS:
        return
    for word in ("timeout", "timeout_seconds"):
        slot = task.slot(word)
        if slot is None or not _is_number(slot.node):
            continue
        task.pop(word)
        spec = task.within("spec", like=slot)
        made = spec.put("timeout", slot.node, like=slot, at=0)
        task.flow = False
        draft.tell(slot, word, "spec.timeout", now=made)
    _knobs_of_task(draft, task)
    if task.text("kind") == "shell":
        _command_of_list(draft, task)
    if task.text("kind") == "playbook":
        _child_of_task(draft, task)
    for key in ("args", "libs", "auth", "params", "headers"):
        _leave_out_empty(draft, task, key)


def _knobs_of_task(draft: Draft, task: Mapping) -> None:
    """Knobs beside `kind`; what this runtime does anyway is left out."""
    pool = task.slot("pool")
    held = pool.node if pool is not None else None
    size = held.node("max_size") or held.node("size") if isinstance(held, Mapping) else held
    knobs = KINDS[task.text("kind") or ""].knobs
    if pool is not None and knobs is not None and "pool" not in knobs:
        task.pop("pool")
        draft.tell(pool, "pool", "removed: the kind keeps no connections")
    elif pool is not None and size is not None and _is_number(size):
        task.pop("pool")
        made = task.within("spec", like=pool).put("pool", size, like=pool)
        task.flow = False
        draft.tell(pool, "pool", "spec.pool", now=made)
    for word in _CHECKS if task.text("kind") == "http" else ():
        slot = task.slot(word)
        if slot is None:
            continue
        if isinstance(slot.node, Scalar) and slot.node.value is True:
            task.pop(word)
            draft.tell(slot, f"{word}: true", "removed: certificates are always checked")
        else:
            draft.refuse(
                slot,
                "certificates are always checked",
                "give the worker the authority: SSL_CERT_FILE names a file with its certificate",
            )
    for word in ("output_select", "output", "result"):
        _leave_out_storage(draft, task, word)


def _leave_out_storage(draft: Draft, holder: Mapping, word: str) -> None:
    """What of a result is shown or stored where: results are whole, and stored by their size."""
    slot = holder.slot(word)
    if slot is None or (word != "output_select" and not isinstance(slot.node, Mapping)):
        return
    holder.pop(word)
    draft.refuse(
        slot,
        f"'{word}' chose what of a result is kept; here a result is kept whole, a large one "
        "outside of the log (RES-1)",
        "read the parts that are needed; nothing else changes",
        code="changed-meaning",
    )
    draft.tell(slot, word, "removed")


def storage_of_step(draft: Draft, step: Mapping) -> None:
    """`output` and `result` beside `tool`."""
    for word in ("output_select", "output", "result") if "tool" in step else ():
        _leave_out_storage(draft, step, word)


def _is_number(node: Node) -> bool:
    return isinstance(node, Scalar) and type(node.value) in (int, float)


def _leave_out_empty(draft: Draft, task: Mapping, key: str) -> None:
    """An empty mapping that this table has renamed; what was canonical stays as it was."""
    slot = task.slot(key)
    empty = slot is not None and isinstance(slot.node, Mapping) and not slot.node.slots
    if empty and any(note.slot is slot for note in draft.notes):
        task.pop(key)


def _command_of_list(draft: Draft, task: Mapping) -> None:
    """`cmds` ran one after the other and stopped at the first that failed."""
    slot = task.slot("cmds")
    if slot is None or "command" in task:
        return
    entries = slot.node.slots if isinstance(slot.node, Sequence) else [slot]
    texts = [entry.text for entry in entries]
    if not texts or any(text is None for text in texts):
        draft.refuse(slot, "'cmds' holds something that is not text", "write command: |")
        return
    lines = [text.rstrip("\n") for text in texts if text is not None]
    body = lines if len(lines) == 1 else ["set -e", *lines]
    made = block_text("\n".join(body) + "\n", slot.line)
    task.rename("cmds", "command")
    slot.node = made
    task.flow = False
    draft.tell(slot, "cmds: [ … ]", "command")


def block_text(text: str, line: int) -> Scalar:
    """A text of several lines in literal style, where YAML can hold it so."""
    body = text.rstrip("\n")
    if (
        not body
        or body.startswith((" ", "\t"))
        or "\r" in text
        or any(ord(sign) < 32 and sign not in "\n\t" for sign in text)
    ):
        return Scalar(text, [_quoted(text)], '"', "", line)
    header = "|" if text == body + "\n" else "|-" if text == body else "|+"
    lines = [f"  {one}" if one else "" for one in text.removesuffix("\n").split("\n")]
    return Scalar(text, [header, *lines], "|", "", line)


def _quoted(text: str) -> str:
    made = node_of(text)
    return made.lines[0] if isinstance(made, Scalar) else ""


_EMPTY: Final = ("auth", "libs", "args", "params", "headers", "env")


def empty_inputs(draft: Draft, task: Mapping) -> None:
    """`auth: {}` and the like say nothing."""
    for key in _EMPTY:
        slot = task.slot(key)
        if slot is not None and isinstance(slot.node, Mapping) and not slot.node.slots:
            task.pop(key)
            draft.tell(slot, f"{key}: {{}}", "")


# ── playbooks that are called ──

_ASKS_FOR: Final = ("return_step", "result_step")


def _child_of_task(draft: Draft, task: Mapping) -> None:
    """`return_step`: the child's result is that of its last step."""
    for word in _ASKS_FOR:
        slot = task.pop(word)
        if slot is not None:
            draft.left["returned", id(task)] = slot
            draft.refuse(
                slot,
                f"a child's result is that of its last step; here '{slot.text}' was asked for",
                f"let '{slot.text}' be the step that the child ends with",
                code="changed-meaning",
            )
            draft.tell(slot, f"{word}: {slot.text}", "the child's result")
    asked = task.pop("return_result")
    if asked is not None:
        draft.left.setdefault(("returned", id(task)), asked)
        draft.tell(asked, "return_result", "the child's result")
