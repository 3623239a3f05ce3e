"""Does a guard wait for what the step never ends in? (VAL-3, VAL-6, LOOP-4)"""

from noetl.expression.meant import closest
from noetl.expression.reads import reads
from noetl.expression.syntax import is_template
from noetl.late import late
from noetl.messages.names import NAMES, canonical
from noetl.playbook.check_literals import scalars
from noetl.playbook.model import Playbook
from noetl.playbook.reader import At, Reader

# By whether the step has a loop: how it can end.
_ENDS = {True: ("loop.done", "step.failed"), False: ("step.done", "step.failed")}
LONGEST_GUARD = 2_000  # a warning is not worth the time that longer ones could take
_COMPARED = late(
    r"""event\.name\s*==\s*(['"])(?P<right>[^'"]*)\1|(['"])(?P<left>[^'"]*)\3\s*==\s*event\.name"""
)
_LISTED = late(r"event\.name\s+in\s*[\[(](?P<names>[^\])]*)[\])]")
_QUOTED = late(r"""(['"])(.*?)\1""")


def check_events(reader: Reader, playbook: Playbook) -> None:
    """Each arc's guard against the ways in which its step can end."""
    for step in playbook.steps:
        ends = _ENDS[step.loop is not None]
        kind = "a loop step" if step.loop is not None else "a step without loop"
        for arc in step.router.arcs if step.router else ():
            for name in _awaited(arc.when) if isinstance(arc.when, str) else ():
                if canonical(name) not in ends:
                    reader.report(
                        "impossible-event",
                        reader.places[f"{arc.place.path}.when"],
                        f"the guard waits for '{name}', but {kind} ends in "
                        f"'{ends[0]}' or '{ends[1]}'",
                        f"did you mean '{_meant(name, ends)}'?",
                    )


def _meant(name: str, ends: tuple[str, str]) -> str:
    """An event that there is, but not here, stands for the usual end; else the nearest counts."""
    return ends[0] if canonical(name) in NAMES else closest(name, ends) or ends[0]


def check_event_fields(reader: Reader, playbook: Playbook) -> None:
    """VAL-6: `event.loop` is null where a step has no loop."""
    for step in playbook.steps:
        for arc in step.router.arcs if step.router and step.loop is None else ():
            guard = arc.when[:LONGEST_GUARD] if isinstance(arc.when, str) else ""
            if "event.loop" in guard and _LOOP.search(guard):
                at = reader.places[f"{arc.place.path}.when"]
                _report_no_loop(reader, at, "the guard", step.name)
            if _OF_LOOP in reads(arc.args):
                carried = reader.entries(reader.places[f"{arc.place.path}.args"])
                for key, at in carried.items():
                    if _OF_LOOP in reads(arc.args.get(key)):
                        _report_no_loop(reader, at, f"'{key}'", step.name)


def _report_no_loop(reader: Reader, at: At, who: str, step: str) -> None:
    reader.report(
        "never-set",
        at,
        f"{who} reads 'event.loop', but '{step}' has no loop: it is null",
        "read event.result, or give the step a loop",
    )


def check_statuses(reader: Reader, _: Playbook) -> None:
    """OUT-1: an outcome is `ok` or `error`; a guard that asks for another word is never true."""
    if _asks_for_known(reader.tree.text):
        return
    for _key, at in scalars(reader.tree.root):
        value = at.node.value
        if is_template(value) and len(value) <= LONGEST_GUARD:
            for found in _STATUS.finditer(value):
                word = found["word"]
                if word not in _STATUSES:
                    reader.report(
                        "impossible-status",
                        at,
                        f"the template asks whether the status is '{word}', which it never is",
                        reader.suggest(word, ("ok", "error"), "a status is 'ok' or 'error'"),
                    )


def _asks_for_known(text: str) -> bool:
    """Whether a whole document asks for known words only: to walk through it takes far longer."""
    at = text.find("outcome.status")
    while at >= 0:
        found = _STATUS.match(text, at)
        if found is None or found["word"] not in _STATUSES:
            return False
        at = text.find("outcome.status", found.end())
    return True


_STATUS = late(r"""(?<![\w.])outcome\.status\s*[!=]=\s*(['"])(?P<word>[^'"]*)\1""")
_STATUSES = ("ok", "error", "success")  # the last is told as an older word
_OF_LOOP = ("event", "loop")
_LOOP = late(r"(?<![\w.])event\.loop\b")


def _awaited(guard: str) -> list[str]:
    """The event names that a guard compares with."""
    if "event.name" not in guard or len(guard) > LONGEST_GUARD:
        return []
    names = [found["right"] or found["left"] or "" for found in _COMPARED.finditer(guard)]
    for listed in _LISTED.finditer(guard):
        names += [quoted[2] for quoted in _QUOTED.finditer(listed["names"])]
    return names
