"""The workload of one execution: the payload over the playbook's own, rendered once (DOC-3)."""

from collections.abc import Mapping
from typing import Any

from noetl.playbook.plan import Plan, Scope


def materialize(
    plan: Plan, payload: Mapping[str, Any], execution_id: str, seen: Scope | None = None
) -> dict[str, Any]:
    """
    Merge first, then render top-down: a default that refers to an overridden key sees the
    payload's value (decision 0001). What came with the payload is data and is never rendered.
    `seen` holds what templates need besides: bodies, a meter.
    """
    workload: dict[str, Any] = {}
    scope = {**(seen or {}), "workload": workload, "execution_id": execution_id}
    _fill(workload, plan.workload, payload, scope)
    return workload


def _fill(
    target: dict[str, Any],
    declared: Mapping[str, Any],
    payload: Mapping[str, Any],
    scope: dict[str, Any],
) -> None:
    for key, value in declared.items():
        over = payload.get(key)
        if isinstance(value, dict) and (key not in payload or isinstance(over, Mapping)):
            target[key] = {}
            _fill(target[key], value, over if isinstance(over, Mapping) else {}, scope)
        elif key in payload:
            target[key] = over
        else:
            target[key] = value(scope)
    for key, value in payload.items():
        if key not in declared:
            target[key] = value
