"""Loops of the reference model: who may begin, who may write, and what it all comes to (LOOP)."""

from typing import Any

from tests.model.expressions import TemplateFault, render
from tests.model.pipelines import Differs, Error, Pipeline, Tree, fault
from tests.model.reducers import NOTHING, CannotTake, fold

Write = tuple[str, Any]
"""A key and the value that it was given."""


class Loop:
    """One run of a loop: of a step, or of a task of kind iterator (LOOP-7)."""

    def __init__(
        self, looped: Tree, tasks: list[Tree], names: Tree, around: Pipeline | None
    ) -> None:
        spec = looped.get("spec", {})
        policy = spec.get("policy", {})
        self.iterator = looped["iterator"]
        self.parallel = spec.get("mode") == "parallel"
        self.flight = spec.get("max_in_flight", 10) if self.parallel else 1
        self.goes_on = policy.get("on_failure") == "continue"
        self.reduce: dict[str, str] = policy.get("reduce", {})
        self.tasks = tasks
        self.names = names
        self.around = around
        self.began = dict(names["ctx"])
        self.open: dict[int, Pipeline] = {}
        self.ended: dict[int, Pipeline] = {}
        self.holds: dict[str, dict[int, Any]] = {}
        """Of a parallel loop: the value that each iteration gave a key last."""
        self.written: dict[int, list[Write]] = {}
        """What is folded at the end, by iteration."""
        self.offered: set[int] = set()
        """Iterations that the pool was given before any had failed: they are in flight."""
        self.error: Error | None = None
        self.items: list[Any] = []
        try:
            found = render(looped["in"], names)
        except TemplateFault:
            self.error = fault("template")
        else:
            if isinstance(found, list):
                self.items = found
            else:
                self.error = fault("loop")

    # ── iterations ──

    def begin(self, index: int, limit: int) -> Pipeline:
        if index in self.open or index in self.ended or index >= len(self.items):
            raise Differs(f"iteration {index} begins twice, or is not there")
        if len(self.open) >= self.flight:
            raise Differs(f"{len(self.open) + 1} iterations run, {self.flight} may")
        if not self.parallel and index != len(self.ended):
            raise Differs(f"iteration {index} begins out of turn")
        if self.failed and not self.goes_on and index not in self.offered:
            raise Differs(f"iteration {index} begins after {self.failed} failed")
        iteration = {self.iterator: self.items[index], "index": index}
        if self.around is not None:
            iteration["parent"] = self.around.names["iter"]
        names = {**self.names, "iter": iteration}
        names["ctx"] = dict(self.names["ctx"]) if self.parallel else self.names["ctx"]
        place = [*(self.around.place if self.around else []), (self, index)]
        pipeline = Pipeline(self.tasks, names, place, limit)
        self.open[index] = pipeline
        return pipeline

    def finish(self, index: int) -> None:
        self.ended[index] = self.open.pop(index)

    @property
    def failed(self) -> list[int]:
        return sorted(index for index, one in self.ended.items() if one.error is not None)

    @property
    def over(self) -> bool:
        if self.open:
            return False
        return len(self.ended) == len(self.items) or (bool(self.failed) and not self.goes_on)

    # ── the end ──

    @property
    def summary(self) -> Tree:
        failed = self.failed
        return {
            "total": len(self.items),
            "done": len(self.ended) - len(failed),
            "failed": len(failed),
            "results": self.results,
            "errors": [{"index": index, "error": self.ended[index].error} for index in failed],
        }

    @property
    def results(self) -> list[Any]:
        """By index, null for one that failed (LOOP-6)."""
        found = [self.ended.get(index) for index in range(len(self.items))]
        return [None if one is None or one.error is not None else one.result for one in found]

    @property
    def failure(self) -> Error | None:
        """Why the step, or the task, fails: the lowest index that failed (LOOP-4)."""
        if self.error is not None:
            return self.error
        if not self.failed or self.goes_on:
            return None
        return fault("loop", index=self.failed[0], cause=self.ended[self.failed[0]].error)

    def outcome(self) -> Tree:
        """Of a nested loop."""
        if self.error is None and not self.over:
            raise Differs("a nested loop ends before its iterations")
        error = self.failure
        result = None if error is not None else self.results
        return {"status": "error" if error else "ok", "result": result, "error": error}

    def kept(self, key: str) -> list[Any]:
        """The writes of a key in index order, those of failed iterations left out."""
        return [value for name, value in self.writes() if name == key]

    def writes(self) -> list[Write]:
        found: list[Write] = []
        for index in sorted(self.written):
            if index in self.ended and self.ended[index].error is None:
                found += self.written[index]
        return found

    def folded(self) -> Tree:
        """What reducers come to, on top of what ctx had when the loop began."""
        found: Tree = {}
        for key, how in self.reduce.items():
            writes = self.kept(key)
            if writes:
                found[key] = fold(how, self.began.get(key, NOTHING), writes)
        return found


# ── writing ──────────────────────────────────────────────────────────────────────────────────


def may_write(pipeline: Pipeline, writes: Tree, shared: dict[str, str], ctx: Tree) -> Error | None:
    """LOOP-5, SCOPE-6: why a write is refused."""
    for key, value in writes.items():
        if key in shared:
            try:
                fold(shared[key], ctx.get(key, NOTHING), [value])
            except CannotTake:
                return fault("ctx_conflict")
            continue
        if any(key in loop.reduce for loop, _ in pipeline.place):
            continue
        for loop, index in pipeline.place:
            others = loop.holds.get(key, {})
            if loop.parallel and any(
                held != value for other, held in others.items() if other != index
            ):
                return fault("ctx_conflict")
    return None


def write(pipeline: Pipeline, writes: Tree, shared: dict[str, str], ctx: Tree) -> Tree:
    """Apply what may be written; what the execution's ctx gets of it."""
    patch: Tree = {}
    for key, value in writes.items():
        if key in shared:
            patch[key] = fold(shared[key], ctx.get(key, NOTHING), [value])
            continue
        if any(key in loop.reduce for loop, _ in pipeline.place):
            keep(pipeline, key, value)
            continue
        for loop, index in pipeline.place:
            loop.holds.setdefault(key, {})[index] = value
        see(pipeline, key, value)
        patch[key] = value
    ctx.update(patch)
    return patch


def keep(pipeline: Pipeline, key: str, value: Any) -> None:
    """A write for reducers: the loops around hand it on when they end, from the inside out."""
    loop, index = pipeline.place[-1]
    loop.written.setdefault(index, []).append((key, value))


def see(pipeline: Pipeline, key: str, value: Any) -> None:
    """A step run sees its own writes at once, those of loops inside it when they end."""
    pipeline.names["ctx"][key] = value


def see_nested(pipeline: Pipeline, loop: Loop) -> None:
    """What the iterations of a nested loop wrote, the pipeline around it sees from its end on."""
    if loop.parallel:
        for key, held in loop.holds.items():
            for index in sorted(held):
                see(pipeline, key, held[index])


def after_nested(pipeline: Pipeline, loop: Loop) -> Tree:
    """What a nested loop leaves to the pipeline around it; what it writes to ctx by reducers."""
    own: Tree = {}
    for key in dict.fromkeys(key for key, _ in loop.writes()):
        writes = loop.kept(key)
        how = loop.reduce.get(key)
        outer = [one.reduce[key] for one, _ in pipeline.place if key in one.reduce]
        if not outer:
            assert how is not None
            own[key] = fold(how, loop.began.get(key, NOTHING), writes)
        else:
            alike = how in (None, outer[-1])
            for value in writes if alike else [fold(str(how), NOTHING, writes)]:
                keep(pipeline, key, value)
    return own
