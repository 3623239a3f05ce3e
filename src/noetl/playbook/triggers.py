"""The document of a trigger: nodes → Trigger, with everything that is wrong with it (START-1)."""

from collections.abc import Callable
from functools import cached_property
from typing import Any, Final, Literal
from zoneinfo import available_timezones

import msgspec

from noetl.errors import TemplateFault
from noetl.expression.syntax import parse, texts_of
from noetl.expression.template import Evaluate, compile_value
from noetl.messages.globs import matches
from noetl.playbook import trigger_blocks as blocks
from noetl.playbook.blocks import METADATA
from noetl.playbook.check_brought import compare
from noetl.playbook.check_literals import scalars
from noetl.playbook.check_names import reads_in
from noetl.playbook.fitting import shown
from noetl.playbook.occurrences import Schedule, check
from noetl.playbook.reader import At, Reader
from noetl.playbook.shape import Block
from noetl.playbook.suggest import did_you_mean, listed

SEEN: Final = ("name", "at", "data", "headers")
"""What templates of a payload find below `trigger`."""
OWN: Final = "trigger"
"""The key of `workload` that says what started the execution; no payload may take it."""
SEGMENTS: Final = frozenset(".-_/")
LONGEST_NAME: Final = 255
"""Characters of a subject or a stream."""


class Webhook(msgspec.Struct, frozen=True, kw_only=True):
    """Starts with a call."""

    scheme: Literal["noetl", "github", "bearer"] = "noetl"
    credential: str = ""
    max_bytes: int = 1_048_576
    wait: float = 0.0


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """Starts with a message."""

    subject: str = ""
    stream: str | None = None
    durable: str | None = None


class OnEnd(msgspec.Struct, frozen=True, kw_only=True):
    """Starts with the end of an execution."""

    path: str = ""
    status: tuple[str, ...] = blocks.ENDS


On = Schedule | Webhook | Subject | OnEnd


class Trigger(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """What starts which playbook, and with what."""

    name: str
    path: str
    metadata: dict[str, Any]
    kind: str
    """Which of `schedule webhook subject execution`."""
    playbook: str
    version: int | str | None
    payload: dict[str, Any] | None
    on: On
    paused: bool = False

    @cached_property
    def made_payload(self) -> Evaluate | None:
        """The templates of the payload, compiled once."""
        return None if self.payload is None else compile_value(self.payload)


def parse_trigger(reader: Reader) -> Trigger | None:
    """The trigger as far as it could be read; None where something it needs is missing."""
    root = reader.tree.root
    fields = reader.fields(blocks.TRIGGER, At(root, root, ""))
    metadata = reader.fields(METADATA, fields["metadata"]) if "metadata" in fields else {}
    if "path" in metadata:
        _check_path(reader, metadata["path"])
    spec = reader.fields(blocks.TRIGGER_SPEC, fields["spec"]) if "spec" in fields else {}
    policy = reader.fields(blocks.TRIGGER_POLICY, spec["policy"]) if "policy" in spec else {}
    if "payload" in spec:
        _check_payload(reader, spec["payload"])
    kind, on = _parse_on(reader, spec["on"]) if "on" in spec else ("", None)
    version = reader.value(spec["version"]) if "version" in spec else None
    if "playbook" in spec:
        given = (spec["payload"], reader.value(spec["payload"])) if "payload" in spec else None
        wanted = str(reader.value(spec["playbook"]))
        # An alarm for whatever fails, itself too, is meant; what completes and starts again is not.
        if isinstance(on, OnEnd) and "completed" in on.status and matches(wanted, on.path):
            said = f"the trigger starts '{wanted}', whose own end starts it again"
            reader.report("trigger-circle", spec["on"], said, "name other paths in `on`")
        compare(reader, wanted, spec["playbook"], given, version=version)
    if on is None or not {"name", "path"} <= metadata.keys() or "playbook" not in spec:
        return None
    return Trigger(
        name=reader.value(metadata["name"]),
        path=reader.value(metadata["path"]),
        metadata=reader.value(fields["metadata"]),
        kind=kind,
        playbook=reader.value(spec["playbook"]),
        version=version if version is None or type(version) is int else str(version),
        payload=reader.value(spec["payload"]) if "payload" in spec else None,
        on=on,
        paused="paused" in policy and reader.value(policy["paused"]),
    )


def _parse_on(reader: Reader, at: At) -> tuple[str, On | None]:
    fields = reader.fields(blocks.ON, at)
    kind = one_of(reader, at, fields, blocks.KINDS_OF_TRIGGER)
    if kind is None:
        return "", None
    block, made, checked = PARTS[kind]
    inner = reader.fields(block, fields[kind])
    known = {key: reader.value(entry) for key, entry in inner.items()}
    if any(field.required and key not in known for key, field in block.fields.items()):
        return kind, None
    known = checked(reader, fields[kind], inner, known)
    return kind, made(**known)


def one_of(reader: Reader, at: At, given: dict[str, At], names: tuple[str, ...]) -> str | None:
    """The one key of a group that must stand alone; told where none or several do."""
    found = [name for name in names if name in given]
    if len(found) == 1:
        return found[0]
    if not found and reader.value(at):  # what stands there instead is told already
        return None
    says = f"has {' and '.join(map(repr, found))}" if found else "has none of its forms"
    reader.report(
        "trigger-choice",
        at,
        f"'{at.path.rpartition('.')[2]}' {says}",
        f"keep one of: {listed(names)}",
    )
    return None


def _check_schedule(
    reader: Reader, at: At, given: dict[str, At], known: dict[str, Any]
) -> dict[str, Any]:
    form = one_of(reader, at, given, ("cron", "every", "at"))
    wrong = None if form is None else check(Schedule(**known))
    if wrong is not None:
        place = given["timezone"] if wrong.startswith("no time zone") else given[form or ""]
        reader.report("bad-schedule", place, wrong, _remedy(place, str(reader.value(place))))
    return known


def _remedy(at: At, given: str) -> str:
    """What to write instead; the words of other crons, and names of places nearly right."""
    key = at.path.rpartition(".")[2]
    if key == "timezone":
        return did_you_mean(given, sorted(available_timezones()), HINTS[key])
    if key == "cron" and given in NICKNAMES:
        return f"write '{NICKNAMES[given]}'"
    return HINTS[key]


NICKNAMES: Final = {
    **dict.fromkeys(("@daily", "@midnight"), "0 0 * * *"),
    **dict.fromkeys(("@yearly", "@annually"), "0 0 1 1 *"),
    "@hourly": "0 * * * *",
    "@weekly": "0 0 * * SUN",
    "@monthly": "0 0 1 * *",
}
HINTS: Final = {
    "cron": "write minute hour day month weekday, such as '30 6 * * MON-FRI'",
    "at": "write a time such as 2026-03-01T06:00:00Z",
    "timezone": "write an IANA name such as Europe/Berlin",
}


def _check_ends(
    reader: Reader, at: At, given: dict[str, At], known: dict[str, Any]
) -> dict[str, Any]:
    status = known.get("status", blocks.ENDS)
    words = (status,) if isinstance(status, str) else tuple(status)
    for word in words:
        if word not in blocks.ENDS:
            hint = did_you_mean(word, blocks.ENDS, f"write one of: {listed(blocks.ENDS)}")
            reader.report("wrong-value", given["status"], f"no execution ends {shown(word)}", hint)
    del at
    return {**known, "status": words}


def _check_subject(
    reader: Reader, at: At, given: dict[str, At], known: dict[str, Any]
) -> dict[str, Any]:
    """What NoETL says to itself is nobody's to read: a wake-up would start, a result be read."""
    for key, own, sound in (
        ("subject", is_own_subject, is_subject),
        ("stream", is_own_stream, is_stream),
    ):
        name = known.get(key)
        if name is None:
            continue
        said = f"{key} is {shown(name)}"
        if own(name):
            why = f"{said}, which NoETL and NATS use internally"
            reader.report("wrong-value", given[key], why, "choose a stream of your own")
        elif not sound(name):
            hint = "names between dots, `*` for one of them, `>` for all that follow"
            if key == "stream":
                hint = "a stream's name has neither blanks, dots, slashes nor wildcards"
            reader.report("wrong-value", given[key], f"{said}, which NATS does not take", hint)
    del at
    return known


def is_subject(text: str) -> bool:
    """As NATS takes them (START-5); a blank or a line break would end it in the middle."""
    *before, _ = parts = text.split(".")
    return len(text) <= LONGEST_NAME and ">" not in before and all(map(is_token, parts))


def is_stream(text: str) -> bool:
    return len(text) <= LONGEST_NAME and is_token(text) and not set(text) & set(".*>/\\")


def is_token(text: str) -> bool:
    return bool(text) and text.isprintable() and " " not in text


def is_own_subject(subject: str) -> bool:
    return subject.startswith("$") or subject.partition(".")[0] in ("noetl", "_INBOX")


def is_own_stream(name: str) -> bool:
    return name == "NOETL" or name.startswith("OBJ_noetl")


def _unchecked(_: Reader, __: At, ___: dict[str, At], known: dict[str, Any]) -> dict[str, Any]:
    return known


Checked = Callable[[Reader, At, dict[str, At], dict[str, Any]], dict[str, Any]]

PARTS: Final[dict[str, tuple[Block, type[On], Checked]]] = {
    "schedule": (blocks.SCHEDULE, Schedule, _check_schedule),
    "webhook": (blocks.WEBHOOK, Webhook, _unchecked),
    "subject": (blocks.SUBJECT, Subject, _check_subject),
    "execution": (blocks.EXECUTION, OnEnd, _check_ends),
}


def _check_path(reader: Reader, at: At) -> None:
    """It stands in the address of a hook and in keys: letters, digits and a few signs."""
    path = str(reader.value(at))
    plain = path.isascii() and all(one.isalnum() or one in SEGMENTS for one in path)
    if not plain or len(path) > 120 or not {"", ".", ".."}.isdisjoint(path.split("/")):
        reader.report(
            "trigger-path",
            at,
            f"the path of a trigger is {shown(path)}, which no address can hold",
            "use letters, digits, '.', '-', '_' and '/' between them; 120 at the most",
        )


def _check_payload(reader: Reader, at: At) -> None:
    if OWN in reader.value(at):
        reader.report(
            "trigger-payload",
            reader.entries(at)[OWN],
            f"the payload sets '{OWN}', under which `workload` has what started the execution",
            "choose another name; templates of the playbook read workload.trigger.at as it is",
        )
    for _, place in scalars(reader.tree.root):
        if place.path.startswith((f"{at.path}.", f"{at.path}[")):
            for text in texts_of(reader.value(place)):
                _check_names(reader, place, text)


def _check_names(reader: Reader, at: At, text: str) -> None:
    """A payload sees `trigger` and nothing else (VAL-5)."""
    try:
        reads = list(reads_in(parse(text)))
    except TemplateFault:
        return  # told already
    for read in reads:
        key = read.keys[0] if read.keys else None
        if read.root != "trigger":
            hint = f"a payload sees `trigger` with {listed(SEEN)}"
            reader.report("unknown-name", at, f"'{read.root}' is undefined here", hint)
        elif type(key) is str and key not in SEEN:
            hint = did_you_mean(key, SEEN, f"it has: {listed(SEEN)}")
            reader.report("unknown-name", at, f"'trigger.{key}' is undefined", hint)
