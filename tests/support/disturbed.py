"""
Playbooks to be disturbed: whatever is killed in between, they come to one and the same end.

Every task asks one server for an effect, which fails its first `fail` attempts. Nothing in them
depends on the order in which parallel things end.
"""

from typing import Any

from tests.support.steps import (
    Tree,
    allow,
    arc,
    loop,
    nested,
    noop,
    otherwise,
    playbook,
    refuse,
    sets,
    step,
    task,
    when,
)

AGAIN = when("outcome.status == 'error'", "retry", attempts=4, delay=0.001)
DATA = "_prev.data"
RESULT = "outcome.result.data"


def effect(label: str, value: Any, *rules: Tree, fail: int = 0) -> Tree:
    """A task with an effect: it gives `value` back, after `fail` failures."""
    body = {"value": value, "attempt": "{{ _attempt }}", "fail": fail}
    url = "{{ workload.url }}/effect"
    return task(
        label, "http", *([AGAIN] if fail else []), *rules, url=url, method="POST", body=body
    )


def keep(**ctx: Any) -> Tree:
    return otherwise(set_ctx=ctx)


def chain() -> str:
    """Effects one after the other, with retries and writes to ctx."""
    steps = [
        step(
            "start", effect("one", 1, keep(one="{{ outcome.result.data }}")), arcs=[arc("second")]
        ),
        step(
            "second",
            effect("two", "{{ ctx.one + 1 }}", fail=2),
            noop("between"),
            effect("three", f"{{{{ {DATA} + 1 }}}}", keep(three="{{ outcome.result.data }}")),
            arcs=[arc("third", None, given="{{ event.result.data }}")],
        ),
        step("third", noop("rest"), effect("four", "{{ args.given + ctx.three }}", fail=1)),
    ]
    return written("chain", *steps)


def counted() -> str:
    """A sequential loop whose iterations see what earlier ones wrote, and a reducer."""
    work = [
        effect("ask", "{{ iter.n }}", fail=1),
        effect(
            "add",
            f"{{{{ {DATA} + ctx.total }}}}",
            keep(total="{{ outcome.result.data }}", rows="{{ iter.index }}"),
        ),
    ]
    steps = [
        step("start", sets("begin", total=0), arcs=[arc("each")]),
        step("each", *work, loop=loop([3, 1, 4, 1], reduce={"rows": "append"}), arcs=[arc("end")]),
        step("end", effect("tell", "{{ ctx.total }}")),
    ]
    return written("counted", *steps)


def at_once() -> str:
    """A parallel loop with reducers, some of whose iterations retry."""
    work = [
        effect("ask", "{{ iter.n * 2 }}", fail=1),
        effect(
            "add", f"{{{{ {DATA} }}}}", keep(total="{{ outcome.result.data }}", seen="{{ iter.n }}")
        ),
    ]
    reduce = {"total": "sum", "seen": "append"}
    looped = loop([1, 2, 3, 4, 5, 6, 7], mode="parallel", flight=3, reduce=reduce)
    steps = [
        step("start", *work, loop=looped, arcs=[arc("end")]),
        step("end", effect("tell", "{{ [ctx.total, ctx.seen] }}")),
    ]
    return written("at_once", *steps)


def here_at_once() -> str:
    """A parallel loop on one worker that goes on after failures."""
    policy: Tree = {"exec": "local", "on_failure": "continue", "reduce": {"best": "max"}}
    looped = loop([5, 2, 8, 1, 9], mode="parallel", flight=2, **policy)
    work = [
        effect("ask", "{{ iter.n }}", when("outcome.result.data == 8", "fail")),
        effect("add", f"{{{{ {DATA} }}}}", keep(best="{{ outcome.result.data }}"), fail=1),
    ]
    steps = [
        step(
            "start", *work, loop=looped, arcs=[arc("end", None, errors="{{ event.loop.failed }}")]
        ),
        step("end", effect("tell", "{{ [args.errors, ctx.best] }}")),
    ]
    return written("here_at_once", *steps)


def pages() -> str:
    """A jump backwards until there are no more pages, its state in `iter`."""
    more = when(
        "outcome.result.data < 4",
        "jump",
        to="page",
        set_iter={"page": "{{ outcome.result.data }}"},
        set_ctx={"last": "{{ outcome.result.data }}"},
        delay=0.001,
    )
    work = [effect("page", "{{ iter.page | default(0) + 1 }}", more), effect("save", "saved")]
    inner = loop(["a", "b"], iterator="who")
    steps = [
        step("start", *work, arcs=[arc("each")]),
        step("each", *work, loop=inner, arcs=[arc("end")]),
        step("end", effect("tell", "{{ ctx.last }}")),
    ]
    return written("pages", *steps)


def matrix() -> str:
    """A loop within a loop, both reducing, the inner one in parallel."""
    cell = effect(
        "cell",
        "{{ iter.column * iter.parent.row }}",
        keep(total="{{ outcome.result.data }}", cells=1),
        fail=1,
    )
    across = loop([1, 2, 3], iterator="column", mode="parallel", flight=2, reduce={"total": "sum"})
    around = loop([1, 2], iterator="row", reduce={"total": "sum", "cells": "sum"})
    steps = [
        step(
            "start",
            nested("across", across, cell),
            effect("row", "{{ iter.row }}"),
            loop=around,
            arcs=[arc("end")],
        ),
        step("end", effect("tell", "{{ [ctx.total, ctx.cells] }}")),
    ]
    return written("matrix", *steps)


def meeting() -> str:
    """Branches that meet at joins, and a token that waits for a key of ctx."""
    steps = [
        step("start", noop("go"), arcs=[arc("left"), arc("right"), arc("late")], mode="inclusive"),
        step(
            "left", effect("a", 1, fail=1), arcs=[arc("both", None, left="{{ event.result.data }}")]
        ),
        step(
            "right",
            effect("b", 2, keep(open=True)),
            arcs=[arc("both", None, right="{{ event.result.data }}")],
        ),
        step(
            "late",
            effect("c", 3),
            admit=[allow("ctx.open"), refuse()],
            arcs=[arc("both", None, late="{{ event.result.data }}")],
        ),
        step(
            "both",
            effect(
                "sum", "{{ args.left + args.right + args.late }}", keep(sum=f"{{{{ {RESULT} }}}}")
            ),
            join={"from": ["left", "right", "late"], "mode": "all"},
        ),
    ]
    return written("meeting", *steps)


def failing() -> str:
    """Failures that arcs take and one that none takes; the final step runs once at the end."""
    retry = when("outcome.status == 'error'", "retry", attempts=2, delay=0.001)
    hopeless = {"value": "x", "attempt": "{{ _attempt }}", "fail": 9}
    url = "{{ workload.url }}/effect"
    steps = [
        step(
            "start",
            task("never", "http", retry, url=url, method="POST", body=hopeless),
            arcs=[arc("rescue", "event.name == 'step.failed'")],
        ),
        step(
            "rescue",
            effect("fix", 1, keep(mended=True)),
            arcs=[arc("again"), arc("good")],
            mode="inclusive",
        ),
        step("again", task("never", "http", url=url, method="POST", body=hopeless)),
        step("good", effect("fine", 2)),
        step("clean", effect("sweep", "{{ args.status }}", keep(end="{{ outcome.result.data }}"))),
    ]
    return written("failing", *steps, executor={"kind": "local", "spec": {"final_step": "clean"}})


def round_trip() -> str:
    """A cycle of steps that counts in ctx until it is enough."""
    steps = [
        step("start", sets("begin", count=0), arcs=[arc("turn")]),
        step(
            "turn",
            effect("count", "{{ ctx.count + 1 }}", keep(count=f"{{{{ {RESULT} }}}}")),
            arcs=[arc("turn", "ctx.count < 4"), arc("end")],
        ),
        step("end", effect("tell", "{{ ctx.count }}")),
    ]
    return written("round_trip", *steps)


def family() -> str:
    """Children in a parallel loop, and one that fails."""
    child = task(
        "child",
        "playbook",
        otherwise(set_ctx={"sums": "{{ outcome.result.result.data }}"}),
        path="child.yaml",
        args={"n": "{{ iter.n }}", "url": "{{ workload.url }}"},
    )
    looped = loop([1, 2, 3], mode="parallel", flight=2, reduce={"sums": "sum"})
    steps = [
        step("start", child, loop=looped, arcs=[arc("end")]),
        step("end", effect("tell", "{{ ctx.sums }}")),
    ]
    return written("family", *steps)


def large() -> str:
    """Results, ctx, args and a collection that do not fit into the log."""
    rows = "{{ range(90) | list }}"
    work = effect("ask", "{{ iter.n }}", keep(sum=f"{{{{ {RESULT} }}}}"), fail=1)
    looped = loop("{{ ctx.rows[:5] }}", mode="parallel", flight=2, reduce={"sum": "sum"})
    steps = [
        step(
            "start",
            effect("rows", rows, keep(rows=f"{{{{ {RESULT} }}}}")),
            effect("copy", f"{{{{ {DATA} + ctx.rows }}}}"),
            arcs=[arc("each", None, all="{{ event.result.data }}")],
        ),
        step("each", work, loop=looped, arcs=[arc("end", None, all="{{ args.all }}")]),
        step("end", effect("tell", "{{ [ctx.sum, ctx.rows | length, args.all | length] }}")),
    ]
    limits = {"policy": {"limits": {"max_payload_bytes": 200}}}
    return written("large", *steps, executor={"kind": "local", "spec": limits})


def patient() -> str:
    """Long pauses, in a pipeline, in iterations and in a loop within a task."""
    slow = when("outcome.status == 'error'", "retry", attempts=4, delay=30, backoff="linear")

    def asked(value: object) -> Tree:
        body = {"value": value, "attempt": "{{ _attempt }}", "fail": 2}
        return task("ask", "http", slow, url="{{ workload.url }}", method="POST", body=body)

    ask = asked("{{ iter.n }}")
    looped = loop([1, 2, 3], mode="parallel", flight=2)
    steps = [
        step("start", asked(7), effect("then", f"{{{{ {DATA} }}}}"), arcs=[arc("each")]),
        step("each", ask, effect("then", f"{{{{ {DATA} }}}}"), loop=looped, arcs=[arc("inside")]),
        step("inside", nested("both", loop([4, 5]), ask), effect("tell", 1)),
    ]
    return written("patient", *steps)


def borrowed() -> str:
    """Tasks of the workbook, what they give passed on by `set_prev`; a break and a router."""
    shared = effect("shared", "{{ args.n + 1 }}")["shared"]
    ask = task(
        "ask",
        "workbook",
        when("outcome.status == 'error'", "retry", attempts=3, delay=0.001),
        otherwise(set_prev="{{ outcome.result.data }}"),
        name="shared",
        args={"n": "{{ _prev | default(0) or 0 }}"},
    )
    again = {"again": ask["ask"]}
    stop = noop("stop", when("_prev >= 2", "break", set_ctx={"reached": "{{ _prev }}"}))
    steps = [
        step("start", ask, again, stop, effect("never", 1), arcs=[arc("choose")]),
        step(
            "choose",
            arcs=[arc("small", "ctx.reached < 2"), arc("big", None, n="{{ ctx.reached }}")],
        ),
        step("small", effect("small", 1)),
        step("big", effect("big", "{{ args.n }}", fail=1)),
    ]
    return written("borrowed", *steps, workbook={"tasks": {"shared": shared}})


def child() -> str:
    """What `family` starts."""
    steps = [
        step("start", effect("double", "{{ workload.n * 2 }}", fail=1), arcs=[arc("end")]),
        step("end", noop("pause"), effect("tell", "{{ workload.n + 10 }}")),
    ]
    return written("child", *steps, workload={"n": 0, "url": ""})


def written(name: str, *steps: Tree, **roots: Any) -> str:
    head = {"name": name, "path": f"tests/{name}"}
    return playbook(*steps, **{"workload": {"url": ""}, "metadata": head, **roots})


PLAYBOOKS = {
    make.__name__: make
    for make in (
        chain,
        counted,
        at_once,
        here_at_once,
        pages,
        matrix,
        meeting,
        failing,
        round_trip,
        family,
        large,
        patient,
        borrowed,
    )
}

ENDS: dict[str, tuple[str, Any]] = {
    "chain": ("completed", 6),
    "counted": ("completed", 9),
    "at_once": ("completed", [56, [1, 2, 3, 4, 5, 6, 7]]),
    "here_at_once": ("completed", [1, 9]),
    "pages": ("completed", 3),
    "matrix": ("completed", [18, 6]),
    "meeting": ("completed", 6),
    "failing": ("failed", 2),
    "round_trip": ("completed", 4),
    "family": ("completed", 36),
    "large": ("completed", [10, 90, 180]),
    "patient": ("completed", 1),
    "borrowed": ("completed", 2),
}
"""What each comes to: its status, and the value that its last effect was given."""
