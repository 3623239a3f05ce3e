"""Does a template of the document parse? The door from the playbook to the expressions."""

from typing import Any, NamedTuple

from jinja2 import TemplateSyntaxError
from jinja2.sandbox import ImmutableSandboxedEnvironment

_ENVIRONMENT = ImmutableSandboxedEnvironment()


class TemplateProblem(NamedTuple):
    """What is wrong with a template or guard; `line` counts from 0 within its text."""

    code: str
    message: str
    hint: str
    line: int = 0


GUARD_HINT = 'write true, false or one expression: when: "{{ … }}"'


def is_template(value: Any) -> bool:
    """TPL-1: only text with one of the two openings is a template."""
    return isinstance(value, str) and ("{{" in value or "{%" in value)


def template_fault(text: str) -> TemplateProblem | None:
    """What is wrong with a template, if anything."""
    try:
        _ENVIRONMENT.parse(text)
    except TemplateSyntaxError as error:
        return TemplateProblem("template-syntax", error.message or "", "", error.lineno - 1)
    return None


def guard_fault(value: Any) -> TemplateProblem | None:
    """What is wrong with a guard, if anything (VAL-2)."""
    if isinstance(value, bool):
        return None
    if not isinstance(value, str):
        return TemplateProblem("guard-shape", "expected a boolean or expression", GUARD_HINT)
    text = value.strip()
    if not (text.startswith("{{") and text.endswith("}}")) or text.count("{{") != 1:
        return TemplateProblem("guard-shape", f"'{value}' is no guard", GUARD_HINT)
    return template_fault(value)
