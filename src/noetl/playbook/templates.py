"""Does a template of the document parse? (VAL-2)."""

from typing import Any, Final

import msgspec

from noetl.expression.grammar import known
from noetl.expression.limits import LONGEST_STATEMENTS
from noetl.expression.syntax import check_guard, is_everyday, is_template
from noetl.expression.template import check_text
from noetl.late import late
from noetl.playbook.suggest import did_you_mean

GUARD_HINT = 'write true, false or one whole expression: when: "{{ … }}"'
ASKING: Final = late(r"[.=<>]|\b(?:and|or|not|in|is)\b")
TEMPLATE_HINT = "fix the expression between '{{' and '}}'"
# A document of legal size must not take long to judge, whatever stands in it (DOC-7).
MOST_FAULTS: Final = 1_000
LONGEST_RARE: Final = 131_072
SHORTEST_STATEMENTS: Final = 100  # what compiling costs at least, in characters


# What Jinja2's parser calls things, and what the author wrote.
WORDS: Final = (
    (late(r"'?end of print statement'?"), "'}}'"),
    (late(r"'?end of statement block'?"), "'%}'"),
    (late(r"'?end of template'?"), "end of the text"),
    (late(r"unexpected char (.+) at \d+"), r"unexpected character \1"),
)
# The remedy, by what the parser complains of.
REMEDIES: Final = (
    (late(r"got '='"), "compare with '==', not '='"),
    (late(r"char '[&!]'|got '\|'"), "write 'and', 'or' and 'not', not '&&', '||' and '!'"),
    (late(r"""char ("'"|'"')"""), "close the quote"),
    (
        late(r"end of template"),
        "close what you opened: '{{' by '}}', '{% if %}' by '{% endif %}'",
    ),
)
UNKNOWN: Final = late(r"there is no (filter|test) named '(\w+)'")


def worded(message: str) -> str:
    """What the parser said, in the words of the document."""
    for pattern, said in WORDS:
        message = pattern.sub(said, message)
    return message.rstrip(".")


def remedy(message: str) -> str:
    """How to fix what the parser complains of."""
    unknown = UNKNOWN.match(message)
    if unknown is not None:
        filters, tests = known()
        return did_you_mean(unknown[2], filters if unknown[1] == "filter" else tests, TEMPLATE_HINT)
    return next((hint for pattern, hint in REMEDIES if pattern.search(message)), TEMPLATE_HINT)


def braced(value: Any) -> str:
    """The hint for a guard that is no expression: what it would be in braces, if it is one then."""
    if not isinstance(value, str) or is_template(value) or '"' in value or len(value) > 80:
        return GUARD_HINT
    whole = f"{{{{ {value.strip()} }}}}"
    if ASKING.search(value) is None or check_text(whole) is not None:
        return GUARD_HINT
    return f'write it in braces: when: "{whole}"'


class TemplateProblem(msgspec.Struct, frozen=True):
    """What is wrong with a template or guard; `line` counts from 0 within its text."""

    code: str
    message: str
    hint: str
    line: int = 0


class Templates:
    """The templates of one document: each text is checked once, and not without end."""

    def __init__(self) -> None:
        self._texts: dict[str, TemplateProblem | None] = {}
        self._guards: dict[str, TemplateProblem | None] = {}
        self._faults = 0
        self._statements = 0
        self._rare = 0
        self._spent = False

    def text(self, text: str) -> TemplateProblem | None:
        """What is wrong with a template, if anything."""
        if text not in self._texts:
            self._texts[text] = None if self._spent else self._judge(text)
        return self._texts[text]

    def guard(self, value: Any) -> TemplateProblem | None:
        """What is wrong with a guard, if anything."""
        fault = self.text(value) if is_template(value) else None
        if fault is not None or (self._spent and is_template(value)):
            return fault
        key = repr(value)
        if key not in self._guards:
            reason = check_guard(value)
            self._guards[key] = (
                None if reason is None else TemplateProblem("guard-shape", reason, braced(value))
            )
        return self._guards[key]

    def _judge(self, text: str) -> TemplateProblem | None:
        fault = check_text(text)
        if fault is not None:
            self._faults += 1
            if self._faults > MOST_FAULTS:
                return self._end(f"more than {MOST_FAULTS:,} templates do not parse", FIX_FIRST)
            said = f"the template does not parse: {worded(fault.message)}"
            return TemplateProblem("template-syntax", said, remedy(fault.message), fault.line)
        if "{%" in text:
            self._statements += max(len(text), SHORTEST_STATEMENTS)
        elif not is_everyday(text):
            self._rare += len(text)
        if self._statements > LONGEST_STATEMENTS:
            limit = f"{LONGEST_STATEMENTS:,}"
            return self._end(f"templates with statements take more than {limit} characters", MOVE)
        if self._rare > LONGEST_RARE:
            limit = f"{LONGEST_RARE:,}"
            return self._end(f"templates of rare syntax take more than {limit} characters", MOVE)
        return None

    def _end(self, said: str, hint: str) -> TemplateProblem:
        self._spent = True
        return TemplateProblem("too-many-templates", f"{said}; the rest is not checked", hint)


FIX_FIRST: Final = "fix the reported ones, then validate again"
MOVE: Final = "move the work into a task of kind python, and data out of the playbook"
