"""Playbooks written in Python: one small function for each part of the language."""

import json
from typing import Any

Tree = dict[str, Any]

HEAD: Tree = {
    "apiVersion": "noetl.io/v2",
    "kind": "Playbook",
    "metadata": {"name": "scenario", "path": "tests/scenario"},
}


def playbook(*steps: Tree, **roots: Any) -> str:
    """The text of a playbook: JSON, which is YAML too."""
    return json.dumps({**HEAD, **roots, "workflow": list(steps)}, indent=1)


def step(
    name: str,
    *tasks: Tree,
    arcs: list[Tree] | None = None,
    mode: str | None = None,
    on_failure: str | None = None,
    admit: Any = None,
    loop: Tree | None = None,
    **spec: Any,
) -> Tree:
    """A step; `spec` holds `join`, `timeout` and what else stands there."""
    tree: Tree = {"step": name}
    if admit is not None:
        spec["policy"] = {"admit": {"rules": admit} if isinstance(admit, list) else admit}
    if spec:
        tree["spec"] = spec
    if loop is not None:
        tree["loop"] = loop
    if tasks:
        tree["tool"] = list(tasks)
    if arcs is not None or not tasks:
        tree["next"] = {"arcs": arcs or []}
        if mode is not None:
            tree["next"]["spec"] = {"mode": mode}
        if on_failure is not None:
            tree["next"].setdefault("spec", {})["policy"] = {"on_failure": on_failure}
    return tree


def arc(to: str, guard: str | bool | None = None, **args: Any) -> Tree:
    tree: Tree = {"step": to}
    if guard is not None:
        tree["when"] = expression(guard)
    if args:
        tree["args"] = args
    return tree


def expression(guard: str | bool) -> str | bool:
    return guard if isinstance(guard, bool) else f"{{{{ {guard} }}}}"


def allow(guard: str | bool | None, verdict: bool = True) -> Tree:
    """A rule of `admit`; without a guard it is `else`."""
    then = {"then": {"allow": verdict}}
    return {"else": then} if guard is None else {"when": expression(guard), **then}


def refuse(guard: str | bool | None = None) -> Tree:
    return allow(guard, False)


def when(guard: str | bool, do: str = "continue", **then: Any) -> Tree:
    """A rule of a task's policy."""
    return {"when": expression(guard), "then": {"do": do, **then}}


def otherwise(do: str = "continue", **then: Any) -> Tree:
    return {"else": {"then": {"do": do, **then}}}


def task(label: str, kind: str, *rules: Tree, timeout: Any = None, **inputs: Any) -> Tree:
    spec: Tree = {"policy": {"rules": list(rules)}} if rules else {}
    if timeout is not None:
        spec["timeout"] = timeout
    return {label: {"kind": kind, **inputs, **({"spec": spec} if spec else {})}}


def call(label: str, *rules: Tree, timeout: Any = None, **inputs: Any) -> Tree:
    """A task whose answers a scenario gives; `body` is what it is called with."""
    return task(label, "http", *rules, timeout=timeout, **{"url": "x", **inputs})


def noop(label: str, *rules: Tree) -> Tree:
    return task(label, "noop", *rules)


def sets(label: str, **ctx: Any) -> Tree:
    """A task that does nothing but write to ctx."""
    return noop(label, otherwise(set_ctx=ctx))


def loop(
    elements: Any, *, iterator: str = "n", mode: str | None = None, flight: int = 0, **policy: Any
) -> Tree:
    """A loop; `policy` holds `exec`, `on_failure` and `reduce`."""
    spec: Tree = {}
    if mode is not None:
        spec["mode"] = mode
    if flight:
        spec["max_in_flight"] = flight
    if policy:
        spec["policy"] = policy
    return {"in": elements, "iterator": iterator, **({"spec": spec} if spec else {})}


def nested(label: str, looped: Tree, *tasks: Tree, rules: tuple[Tree, ...] = ()) -> Tree:
    """A loop inside a task (LOOP-7)."""
    spec = {**looped.get("spec", {})}
    if rules:
        spec["policy"] = {**spec.get("policy", {}), "rules": list(rules)}
    body = {"kind": "iterator", "in": looped["in"], "iterator": looped["iterator"]}
    return {label: {**body, "tool": list(tasks), **({"spec": spec} if spec else {})}}
