"""May this token fire? (ADM)"""

from noetl.control.deciding import Deciding
from noetl.control.execution import Token
from noetl.errors import TemplateFailed
from noetl.messages import events as e
from noetl.pipeline.policy import template_error
from noetl.playbook.plan import AdmissionPlan, Scope


def admits(deciding: Deciding, token: Token, args: dict[str, object]) -> bool:
    """
    Ask the step's rules, and record the first answer and every changed one (ADM-4).

    A rule that cannot be evaluated refuses the token for good and fails the execution (TPL-3).
    """
    admission = deciding.plan.steps[token.step].admission
    if admission is None:
        return True
    event = {"name": "token.created", "step": token.source}
    allow: bool
    rule: int | None
    try:
        allow, rule = deciding.evaluate(
            lambda scope: verdict(admission, scope), deciding.scope(dict(args), event)
        )
    except TemplateFailed as fault:
        error = template_error(fault, f"an admission rule of step '{token.step}'")
        deciding.make(
            e.AdmitEvaluated(token_id=token.token_id, step=token.step, allow=False, error=error)
        )
        drop(deciding, token, "template")
        return False
    if allow is not token.verdict:
        deciding.emit(
            e.AdmitEvaluated(token_id=token.token_id, step=token.step, allow=allow, rule=rule)
        )
    if not allow:
        refuse(deciding, token, admission)
    return allow


def verdict(admission: AdmissionPlan, scope: Scope) -> tuple[bool, int | None]:
    """ADM-1: the first match decides; `inclusive`: every match counts, one refusal refuses."""
    if admission.mode == "exclusive":
        rule = admission.choose(scope)
        return (True, None) if rule < 0 else (admission.allows[rule], rule)
    matched = [rule for rule, guard in enumerate(admission.guards) if guard(scope)]
    refusals = [rule for rule in matched if not admission.allows[rule]]
    if refusals:
        return False, refusals[0]
    return True, matched[0] if matched else None


def refuse(deciding: Deciding, token: Token, admission: AdmissionPlan) -> None:
    """ADM-3: a refused token stays in its place, unless the step says to drop it."""
    if admission.drop:
        drop(deciding, token, "refused")
    elif token.waits != "refused":
        deciding.emit(e.TokenParked(token_id=token.token_id, step=token.step, reason="refused"))


def drop(deciding: Deciding, token: Token, reason: str) -> None:
    deciding.emit(e.TokenDropped(token_id=token.token_id, step=token.step, reason=reason))


def worth_another_try(deciding: Deciding) -> list[Token]:
    """ADM-3: refused tokens whose rules read a ctx key that has changed, in token order."""
    waiting = [token for token in deciding.execution.tokens.values() if token.waits == "refused"]
    if not waiting:
        return []
    patches = [event.patch for event in deciding.events if isinstance(event, e.CtxPatched)]
    changed = {key for patch in patches for key in patch}
    found = []
    for token in waiting:
        admission = deciding.plan.steps[token.step].admission
        if changed and admission and (admission.keys is None or admission.keys & changed):
            found.append(token)
    return found
