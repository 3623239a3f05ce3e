"""Does a template of the document parse? The door from the playbook to the expressions (VAL-2)."""

from typing import Any, NamedTuple

from noetl.expression.syntax import check_guard, check_template, is_template

GUARD_HINT = 'write true, false or one whole expression: when: "{{ … }}"'
TEMPLATE_HINT = "mend the expression between '{{' and '}}'"


class TemplateProblem(NamedTuple):
    """What is wrong with a template or guard; `line` counts from 0 within its text."""

    code: str
    message: str
    hint: str
    line: int = 0


def template_fault(text: str) -> TemplateProblem | None:
    """What is wrong with a template, if anything."""
    fault = check_template(text)
    if fault is None:
        return None
    said = f"the template does not parse: {fault.message}"
    return TemplateProblem("template-syntax", said, TEMPLATE_HINT, fault.line)


def guard_fault(value: Any) -> TemplateProblem | None:
    """What is wrong with a guard, if anything."""
    fault = template_fault(value) if is_template(value) else None
    if fault is not None:
        return fault
    reason = check_guard(value)
    return TemplateProblem("guard-shape", reason, GUARD_HINT) if reason is not None else None
