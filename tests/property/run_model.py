"""
Random playbooks that every dialect can say, written in each: names are read across steps, loops,
branches that do not run, and code.

A playbook is a chain of steps that surely run, some of them with two arms of which one runs; the
last step reads everything that came before it.
"""

from typing import Any, Literal

import msgspec
from hypothesis import strategies as st

Language = Literal["canonical", "case", "eval", "public"]
OLDER: tuple[Language, ...] = ("case", "eval", "public")
Tree = dict[str, Any]
Mode = Literal["", "sequential", "parallel"]
MODES: tuple[Mode, ...] = ("", "", "sequential", "parallel")
IS_ERROR = "outcome.status == 'error'"


CODES = (
    "# {{ not read }}\nn = input_data.get('n')\nreturn {'n': n}\n",
    "def main(input_data):\n    return {'n': input_data['n']}\n",
    "if n >= 0:\n    return {'n': n}\nresult = {'n': 0}\n",
    "rows = list(input_data.values())\nresult = {'n': rows[0]}\n",
)
"""How public code gets what its task is given, and gives its result."""
ROUTED: dict[str, tuple[str, ...]] = {
    "public": ("", "result", "output.data", "response.data"),
    "case": ("result", "response.data", "this.data", "response.result"),
}
"""By dialect: words of a router for what its step came to; the step's own name for none."""


class Node(msgspec.Struct, frozen=True):
    """One step. `adds` are the results that it adds up; a loop does so for each element."""

    name: str
    adds: tuple[str, ...] = ()
    loop: Mode = ""
    code: bool = False
    flaky: bool = False
    """Whether its task fails at the first attempt, and is tried again."""
    fails: bool = False
    """Whether it fails for good; the playbook goes on, without its result."""
    keeps: bool = False
    """Whether it writes a variable of its own."""
    two: bool = False
    """Whether a second task reads what the first one gave; the case dialect has one task."""
    forks: int | None = None
    """The number that its result is compared with, where it has two arms."""
    style: int = 0
    """Which of several words a dialect uses for the same."""


class Book(msgspec.Struct, frozen=True):
    """The chain, and the arms of each step that has some."""

    n: int
    rows: tuple[int, ...]
    chain: tuple[Node, ...]
    arms: dict[str, tuple[Node, Node]]

    def nodes(self) -> list[Node]:
        found: list[Node] = []
        for node in self.chain:
            found += [node, *self.arms.get(node.name, ())]
        return found

    def is_sure(self, name: str) -> bool:
        """Whether a later step of the chain finds its result."""
        return any(node.name == name and not node.fails for node in self.chain)


# ── chance ──


@st.composite
def books(draw: st.DrawFn) -> Book:
    count = draw(st.integers(1, 4))
    chain: list[Node] = []
    arms: dict[str, tuple[Node, Node]] = {}
    known: list[str] = []
    for number in range(count):
        node = draw(nodes(f"step{number}", tuple(known), can_fork=True))
        chain.append(node)
        own = [node.name]
        if node.forks is not None:
            inside = (*known, *own)
            pair = (
                draw(nodes(f"left{number}", inside, can_fork=False)),
                draw(nodes(f"right{number}", inside, can_fork=False)),
            )
            arms[node.name] = pair
            own += [one.name for one in pair]
        known += own
    rows = tuple(draw(st.lists(st.integers(0, 3), max_size=3)))
    return Book(draw(st.integers(0, 3)), rows, tuple(chain), arms)


@st.composite
def nodes(draw: st.DrawFn, name: str, known: tuple[str, ...], *, can_fork: bool) -> Node:
    adds = draw(st.lists(st.sampled_from(known), max_size=2, unique=True)) if known else []
    loop: Mode = draw(st.sampled_from(MODES))
    fails = not loop and draw(st.integers(0, 5)) == 0
    return Node(
        name,
        tuple(adds),
        loop,
        code=draw(st.integers(0, 4)) == 0,
        flaky=not fails and draw(st.integers(0, 4)) == 0,
        fails=fails,
        keeps=not fails and draw(st.booleans()),
        two=not fails and draw(st.integers(0, 3)) == 0,
        forks=draw(st.integers(0, 4)) if can_fork and not fails and draw(st.booleans()) else None,
        style=draw(st.integers(0, 3)),
    )


# ── writing ──


class Writer:
    """One playbook in one language."""

    def __init__(self, book: Book, language: Language) -> None:
        self.book = book
        self.language = language
        self.known = {node.name: node for node in book.nodes()}

    def document(self) -> Tree:
        steps = []
        for number, node in enumerate(self.book.chain):
            after = self.book.chain[number + 1].name if number + 1 < len(self.book.chain) else "end"
            arms = self.book.arms.get(node.name, ())
            steps.append(self.step(node, after))
            steps += [self.step(arm, after) for arm in arms]
        return {
            "apiVersion": "noetl.io/v2",
            "kind": "Playbook",
            "metadata": {"name": "random", "path": "tests/random"},
            "workload": {"n": self.book.n, "rows": list(self.book.rows)},
            "workflow": [*steps, self.end()],
        }

    def expression(self, name: str, *, sure: bool) -> str:
        """The number that a step's result stands for, where another one reads it."""
        by_name = self.language in ("case", "public")
        root = name if by_name else f"ctx.{name}"
        if self.known[name].loop:
            may_lack = not sure or not by_name
            listed = f"({root} | default([]))" if may_lack else root
            return f"({listed} | map(attribute='n') | sum)"
        return f"{root}.n" if sure else f"({root}.n | default(0))"

    def variable(self, node: Node) -> str:
        scope = "vars" if self.language == "case" else "ctx"
        return f"({scope}.of_{node.name} | default(0))"

    def value(self, node: Node) -> str:
        """What a step adds up."""
        element = {"canonical": "iter.row", "eval": "iter.row", "case": "row", "public": "row"}
        parts = [self.expression(name, sure=self.book.is_sure(name)) for name in node.adds]
        parts.append({"public": "n"}.get(self.language, "workload.n"))
        if node.loop:
            parts.append(element[self.language])
        if node.flaky:
            parts.append("0 * (1 // (_attempt - 1))")
        if node.fails:
            parts.append("1 // 0")
        return " + ".join(parts)

    def task(self, node: Node) -> Tree:
        value = f"{{{{ {self.value(node)} }}}}"
        if not node.code:
            return {"kind": "transform", "value": {"n": value}}
        if self.language == "public":
            return {"kind": "python", "input": {"n": value}, "code": CODES[node.style]}
        return {"kind": "python", "args": {"n": value}, "code": "result = {'n': n}\n"}

    def second(self) -> Tree:
        """A task that reads the first one by its name."""
        root = {"canonical": "iter.first", "public": "first", "eval": "vars.first"}[self.language]
        return {"kind": "transform", "value": {"n": f"{{{{ {root}.n + 1 }}}}"}}

    def step(self, node: Node, after: str) -> Tree:
        makers = {
            "canonical": self.canonical,
            "case": self.case,
            "eval": self.eval,
            "public": self.public,
        }
        return {"step": node.name, **makers[self.language](node, after)}

    def targets(self, node: Node) -> tuple[str, str] | None:
        pair = self.book.arms.get(node.name)
        return (pair[0].name, pair[1].name) if pair else None

    def guard(self, node: Node, root: str) -> str:
        """When the first arm runs."""
        size = f"({root} | length)" if node.loop else f"{root}.n"
        return f"{size} > {node.forks}"

    # ── canonical ──

    def canonical(self, node: Node, after: str) -> Tree:
        tree: Tree = {}
        if node.loop:
            tree["loop"] = self.loop(node)
        tasks = [{"first": self.task(node)}]
        tasks += [{"second": self.second()}] if node.two else []
        for number, entry in enumerate(tasks):
            [task] = entry.values()
            rules = self.canonical_rules(node, first=number == 0, last=entry is tasks[-1])
            task["spec"] = {"policy": {"rules": rules}}
        tree["tool"] = tasks
        tree["next"] = {"arcs": self.arcs(node, after, self.guard(node, own_root(node)), "")}
        return tree

    def loop(self, node: Node, *, reduce: bool = True) -> Tree:
        spec: Tree = {"mode": node.loop}
        if reduce:
            kept = {node.name: "append"}
            kept |= {f"of_{node.name}": "last"} if node.keeps else {}
            spec["policy"] = {"reduce": kept}
        return {"in": "{{ workload.rows }}", "iterator": "row", "spec": spec}

    def canonical_rules(self, node: Node, *, first: bool, last: bool) -> list[Tree]:
        rules: list[Tree] = []
        if node.flaky and first:
            retry = {"do": "retry", "attempts": 3}
            rules.append({"when": f"{{{{ {IS_ERROR} and _attempt < 3 }}}}", "then": retry})
        rules.append({"when": f"{{{{ {IS_ERROR} }}}}", "then": {"do": "fail"}})
        then: Tree = {"do": "continue"}
        if node.two and first:
            then["set_iter"] = {"first": "{{ outcome.result }}"}
        if last:
            then["set_ctx"] = self.canonical_writes(node)
        return [*rules, {"else": {"then": then}}]

    def canonical_writes(self, node: Node) -> Tree:
        writes = {node.name: "{{ outcome.result }}"}
        return writes | ({f"of_{node.name}": "{{ outcome.result.n }}"} if node.keeps else {})

    def arcs(self, node: Node, after: str, guard: str, done: str) -> list[Tree]:
        """The ways out in the order in which they are asked."""
        pair = self.targets(node)
        failed = "call.error" if self.language == "public" else "step.failed"
        if node.fails:
            return [{"step": after, "when": f"{{{{ event.name == '{failed}' }}}}"}]
        if pair is None:
            return [{"step": after}]
        return [{"step": pair[0], "when": f"{{{{ {done}{guard} }}}}"}, {"step": pair[1]}]

    # ── the case dialect ──

    def case(self, node: Node, after: str) -> Tree:
        tree: Tree = {"tool": self.task(node)}
        if node.two:
            tree["tool"] = self.case_two(node)
        if node.loop:
            mode = "async" if node.loop == "parallel" else node.loop
            tree["loop"] = {"in": "{{ workload.rows }}", "iterator": "row", "mode": mode}
        if node.flaky:
            tree["retry"] = {"max_attempts": 3}
        last = "{{ (result | last).n if result else 0 }}" if node.loop else "{{ result.n }}"
        written = {f"of_{node.name}": last}
        by_case = node.keeps and node.style == 3 and not node.loop
        if node.keeps and not by_case:
            tree["vars"] = written
        pair = self.targets(node)
        if node.fails:
            tree["case"] = [
                {"when": "{{ event.name == 'call.error' }}", "then": {"next": [{"step": after}]}}
            ]
        elif pair is not None:
            root = ROUTED["case"][node.style]
            guard = f"{{{{ event.name == 'step.exit' and {self.guard(node, root)} }}}}"
            tree["case"] = [{"when": guard, "then": {"next": [{"step": pair[0]}]}}]
            tree["next"] = pair[1]
        else:
            tree["next"] = [{"step": after}]
        if by_case:
            saved = {"when": "{{ event.name == 'call.done' }}", "then": {"set": written}}
            tree["case"] = [saved, *tree.get("case", [])]
        return tree

    def case_two(self, node: Node) -> Tree:
        """The same number by one task."""
        return {"kind": "transform", "value": {"n": f"{{{{ {self.value(node)} + 1 }}}}"}}

    # ── the eval dialect ──

    def eval(self, node: Node, after: str) -> Tree:
        tree: Tree = {"when": "{{ workload.n >= 0 }}"}
        if node.loop:
            tree["loop"] = self.loop(node)
        first = self.task(node)
        first["eval"] = self.eval_entries(node, first=True, last=not node.two)
        tree["tool"] = [{"first": first}]
        if node.two:
            second = self.second()
            second["eval"] = self.eval_entries(node, first=False, last=True)
            tree["tool"].append({"second": second})
        tree["next"] = self.arcs(node, after, self.guard(node, own_root(node)), "")
        return tree

    def eval_entries(self, node: Node, *, first: bool, last: bool) -> list[Tree]:
        entries: list[Tree] = []
        if node.flaky and first:
            guard = f"{{{{ {IS_ERROR} and _attempt < 3 }}}}"
            entries.append({"expr": guard, "do": "retry", "attempts": 3, "backoff": "fixed"})
        done: Tree = {"expr": "{{ outcome.status == 'success' }}", "do": "continue"}
        if node.two and first:
            # In a sequential loop a variable outlives its iteration, and is read in the same one.
            done["set_vars"] = {"first": "{{ outcome.result }}"}
        if last:
            done["set_ctx"] = self.canonical_writes(node)
        return [*entries, done]

    # ── public forms ──

    def public(self, node: Node, after: str) -> Tree:
        tree: Tree = {}
        at_end = node.keeps and bool(node.loop) and node.style == 2
        if node.loop:
            spec = {"mode": node.loop}
            if node.keeps and not at_end:
                spec["policy"] = {"reduce": {f"of_{node.name}": "last"}}  # type: ignore[assignment]
            tree["loop"] = {"collection": "{{ rows }}", "element": "row", "spec": spec}
        first = self.task(node)
        if node.flaky:
            first["retry"] = {"max_attempts": 3, "backoff_seconds": 0}
        writes = {f"ctx.of_{node.name}": "{{ output.data.n }}"}
        last = first
        if node.two:
            last = self.second()
            tree["tool"] = [{"name": "first", **first}, {"name": "second", **last}]
            last = tree["tool"][1]
        else:
            tree["tool"] = first
        if at_end:
            value = f"{{{{ ({node.name} | last).n if {node.name} else 0 }}}}"
            tree["set"] = {f"ctx.of_{node.name}": value}
        elif node.keeps and (node.loop or node.style == 1):
            last["set"] = writes
        elif node.keeps:
            tree["set"] = self.public_writes(node)
        guard = self.guard(node, ROUTED["public"][node.style] or node.name)
        tree["next"] = {
            "spec": {"mode": "exclusive"},
            "arcs": self.arcs(node, after, guard, ""),
        }
        return tree

    def public_writes(self, node: Node) -> Tree:
        """What a step writes at its end, by several words."""
        key, value = f"ctx.of_{node.name}", f"{{{{ {node.name}.n }}}}"
        if node.style == 2:
            return {"ctx": {f"of_{node.name}": value}}
        return {key: "{{ output.data.n }}" if node.style == 3 else value}

    # ── the end ──

    def end(self) -> Tree:
        values = {
            node.name: f"{{{{ {self.expression(node.name, sure=self.book.is_sure(node.name))} }}}}"
            for node in self.book.nodes()
        }
        values |= {
            f"of_{node.name}": f"{{{{ {self.variable(node)} }}}}"
            for node in self.book.nodes()
            if node.keeps
        }
        task: Tree = {"kind": "transform", "value": values}
        listed = self.language in ("canonical", "eval")
        return {"step": "end", "tool": [{"end": task}] if listed else task}


def own_root(node: Node) -> str:
    """A step's own result, as its router sees it."""
    return "event.loop.results" if node.loop else "event.result"


def written(book: Book, language: Language) -> Tree:
    return Writer(book, language).document()
