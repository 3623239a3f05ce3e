"""What a case writes, saves and repeats: in rules of the task, and in tasks after it (S2 §8)."""

from collections.abc import Iterator
from typing import NamedTuple

from noetl.playbook.dialects.case_entries import CaseEntry, acting
from noetl.playbook.dialects.case_state import keep_all, write_into
from noetl.playbook.dialects.draft import Draft
from noetl.playbook.dialects.guards import TRUE, all_of, any_of, expression_of, guard_of
from noetl.playbook.dialects.names import paths_read
from noetl.playbook.dialects.pipeline import (
    IS_ERROR,
    add_task,
    fail_on_error,
    free_label,
    guard_slot,
    guarded_error,
    on_success,
    only_fails,
    plain_task,
    quoted,
    rule_slot,
    rules_in,
    then_node,
    write,
)
from noetl.playbook.dialects.retries import retry_rule
from noetl.playbook.dialects.sight import Sight
from noetl.playbook.dialects.sinks import IS_OK, Sink, label_of, save, sinks_of
from noetl.playbook.dialects.tree import Mapping, Sequence, TreeSlot, node_of, plain
from noetl.playbook.dialects.writes import writes_below

STATUS_CODE = "{{ outcome.http.status | default(none) }}"
Acts = list[tuple[CaseEntry, str]]


class Work(NamedTuple):
    """A step under translation, and the tasks that its cases are about."""

    draft: Draft
    step: Mapping
    holder: Mapping
    """Where its sinks go: the step, or the iterator that its loop has become."""
    task: Mapping
    """The tool itself, in that holder."""
    outer: Mapping
    """What ends the step: the tool, or the iterator around it."""
    kind: str

    @property
    def is_wrapped(self) -> bool:
        return self.holder is not self.step

    @property
    def sight(self) -> Sight:
        """What tasks after the tool see of it."""
        return Sight("after", self.kind)


class Pipe:
    """The end of a pipeline, to which tasks are added; what skips a task learns where to go."""

    def __init__(self, holder: Mapping) -> None:
        self.holder = holder
        self.pending: list[Mapping] = []

    def add(self, label: str, task: Mapping, like: TreeSlot) -> None:
        self.land(label)
        add_task(self.holder, label, task, like)

    def land(self, label: str) -> None:
        for then in self.pending:
            then.put("do", "jump", at=0)
            then.put("to", label, at=1)
        self.pending = []

    def finish(self) -> None:
        for then in self.pending:
            then.put("do", "break", at=0)
        self.pending = []

    def save(self, sinks: list[Sink], leaving: list[Mapping] | None = None) -> str:
        """
        The tasks of some sinks; the label of the first.

        What comes next may not be for them: then their ends wait in `leaving`.
        """
        first = ""
        for sink in sinks:
            label, otherwise = self._gate(sink)
            wish = label_of(self.holder, sink)
            if not label:
                self.land(wish)
            kept = save(self.holder, sink)
            first = first or label or wish
            ends = self.pending if leaving is None or sink is not sinks[-1] else leaving
            ends += [kept] if ends is leaving else []
            ends += [otherwise] if label else []
        return first

    def _gate(self, sink: Sink) -> tuple[str, Mapping]:
        """A task that lets a sink run only when its condition holds; where it goes if not."""
        like = sink.slot.bare
        otherwise = then_node(like, do="break")
        if sink.when == TRUE:
            return "", otherwise
        label, gate = free_label(self.holder, "check"), plain_task("noop", like)
        rules = rules_in(gate, like)
        rules.slots.append(rule_slot(sink.when, then_node(like, do="continue"), sink.at))
        rules.slots.append(rule_slot(None, otherwise, like))
        self.add(label, gate, like)
        return label, otherwise


def retry_cases(work: Work, entries: list[CaseEntry]) -> None:
    """`then.retry` → a rule of the task, before all others."""
    draft, sight = work.draft, Sight("rule", work.kind)
    place = 0
    for entry in entries:
        slot = entry.actions.get("retry")
        if slot is None:
            continue
        both = any_of(
            [
                all_of([IS_OK, _spelled(entry.at("ok"), sight)]),
                guarded_error(_spelled(entry.at("error"), sight)),
            ]
        )
        same = entry.at("ok") == entry.at("error")
        condition = _spelled(entry.at("ok"), sight) if same else both
        rule = retry_rule(draft, slot, sight, condition)
        if rule is None:
            continue
        rules = rules_in(work.task, slot)
        rules.slots.insert(place, rule)
        fail_on_error(rules, slot)
        place += 1
        draft.left["case rules", id(work.task)] = slot
        draft.tell(slot, "case: retry", "spec.policy.rules: do: retry", now=rule)


def _spelled(expression: str, sight: Sight) -> str:
    """In the words of a rule: whether it can be met by a success shows in them."""
    return expression_of(sight.spelled(guard_of(expression))) or expression


def succeed(work: Work, entries: list[CaseEntry], pipe: Pipe) -> None:
    """
    What the cases do after a success: first those of the call, then those of the end.

    In a loop a call ends with each iteration; the step ends once, and is still saved by each.
    """
    for in_call in (True, False):
        acts = list(acting([one for one in entries if one.in_call is in_call], "ok"))
        if in_call:
            _reduce(work, [entry for entry, _ in acts if "set" in entry.actions])
        apart = work.is_wrapped and not in_call
        for keys in (("set",), ("sink",)) if apart else (("set", "sink"),):
            kept = _until_last(acts, keys)
            if not kept:
                continue
            if kept[0][1] == TRUE:
                _act(work, kept[0][0], keys, pipe)
            else:
                _dispatch(work, kept, keys, pipe)


def _reduce(work: Work, entries: list[CaseEntry]) -> None:
    """Parallel iterations write in any order; the last of the collection wins (LOOP-5)."""
    loop = work.holder if work.is_wrapped else work.step.mapping("loop")
    spec = loop.mapping("spec") if loop is not None else None
    if loop is None or spec is None or spec.text("mode") != "parallel":
        return
    for entry in entries:
        written = entry.actions["set"]
        for scope, name, slot in writes_below(work.draft, written):
            if scope != "ctx":
                continue
            reduce = loop.within("spec", like=written).within("policy").within("reduce")
            collected = work.draft.left.get(("collect", id(slot)))
            reducer = "last"
            if collected is not None and collected.key != "replace":
                reducer, slot.node = collected.key or "", collected.node
            reduce.put(name, reducer).line = slot.line


def _until_last(acts: Acts, keys: tuple[str, ...]) -> Acts:
    """Up to the last entry that does something."""
    last = max((n for n, (one, _) in enumerate(acts) if set(keys) & set(one.actions)), default=-1)
    return acts[: last + 1]


def _act(work: Work, entry: CaseEntry, keys: tuple[str, ...], pipe: Pipe) -> None:
    written, sink = entry.taken("set"), entry.taken("sink")
    if written is not None and "set" in keys:
        holder = work.step if "sink" not in keys else work.holder
        then = keep_all(work.draft, holder, written)
        work.draft.tell(written, "case: set", "set_ctx", now=then.slot("set_ctx"))
    if sink is not None and "sink" in keys:
        pipe.save(sinks_of(work.draft, sink, work.sight))
        work.draft.tell(sink, "case: sink", "a storage task")


def _dispatch(work: Work, acts: Acts, keys: tuple[str, ...], pipe: Pipe) -> None:
    """A task that only decides, and the tasks that it leads to."""
    outer = keys == ("set",)
    pipe = Pipe(work.step) if outer else pipe
    like = acts[0][0].slot
    bare = like.bare
    choose = plain_task("noop", bare)
    rules = Sequence(line=like.line)
    pipe.add(free_label(pipe.holder, "choose"), choose, bare)
    sinking = [one for one, _ in acts if "sink" in one.actions and "sink" in keys]
    skipping: list[Mapping] = []
    for entry, expression in acts:
        then = then_node(entry.slot)
        if "set" in keys:
            _set_into(work, then, entry)
        sink = entry.taken("sink") if entry in sinking else None
        if sink is not None:
            leaving = skipping if entry is not sinking[-1] else None
            label = pipe.save(sinks_of(work.draft, sink, work.sight), leaving)
            if entry is not sinking[0]:
                then.put("do", "jump", at=0)
                then.put("to", label, at=1)
            work.draft.tell(sink, "case: sink", "a storage task")
        elif sinking:
            skipping.append(then)
        if not then.slots:
            then.put("do", "continue")
        guard = None if expression == TRUE else expression
        rules.slots.append(rule_slot(guard, then, entry.guard))
    if sinking and acts[-1][1] != TRUE:
        last = then_node(bare, do="continue")
        skipping.append(last)
        rules.slots.append(rule_slot(None, last, bare))
    pipe.pending += skipping
    rules_in(choose, bare).slots = rules.slots


def _set_into(work: Work, then: Mapping, entry: CaseEntry) -> None:
    written = entry.taken("set")
    if written is None:
        return
    for one in writes_below(work.draft, written):
        write_into(then, one, TreeSlot(one.slot.node, line=one.slot.line))
    work.draft.tell(written, "case: set", "set_ctx", now=then.slot("set_ctx"))


def fail(work: Work, entries: list[CaseEntry], pipe: Pipe, *, keep_error: bool) -> None:
    """What the cases do after a failure: rules of the task, and sinks behind the end."""
    acts = list(acting([one for one in entries if one.minds_failures], "error"))
    for keys in (("set",), ("sink",)) if work.is_wrapped else (("set", "sink"),):
        kept = _until_last(acts, keys)
        if kept:
            task = work.task if "sink" in keys else work.outer
            _fail_with(work, task, kept, keys, pipe, keep_error=keep_error)


def _fail_with(
    work: Work, task: Mapping, acts: Acts, keys: tuple[str, ...], pipe: Pipe, *, keep_error: bool
) -> None:
    draft = work.draft
    made: list[TreeSlot] = []
    for entry, expression in acts:
        then = then_node(entry.slot, do="fail")
        if "set" in keys:
            _set_into(work, then, entry)
        sink = entry.taken("sink") if "sink" in keys else None
        if sink is not None:
            _lead_to_sink(work, then, sink, pipe, keep_error=keep_error)
        made.append(rule_slot(guarded_error(expression), then, entry.guard))
    rules = last_runs_count(task, made[0])
    rules.slots = [slot for slot in rules.slots if not only_fails(slot)]
    rules.slots[_after_retries(rules) : _after_retries(rules)] = made
    fail_on_error(rules, made[0])
    draft.left["case rules", id(task)] = made[0]


def _lead_to_sink(
    work: Work, then: Mapping, sink: TreeSlot, pipe: Pipe, *, keep_error: bool
) -> None:
    like = sink.bare
    sinks = sinks_of(work.draft, sink, Sight("failed", work.kind))
    if not sinks:
        return
    if ("behind", id(work.holder)) not in work.draft.left:
        work.draft.left["behind", id(work.holder)] = like
        pipe.finish()
        ending = plain_task("noop", like)
        rules_in(ending, like).slots.append(rule_slot(None, then_node(like, do="break"), like))
        pipe.add(free_label(pipe.holder, "done"), ending, like)
    for one in sinks:
        if one.when != TRUE:
            work.draft.refuse(
                one.slot,
                "a sink after a failure has a condition of its own",
                "put the condition into 'when' of the case",
            )
    wish = label_of(pipe.holder, sinks[0])
    for one in sinks:
        save(pipe.holder, one, failing=one is sinks[-1])
    then.put("do", "jump", at=0)
    then.put("to", wish, at=1)
    then.put("set_prev", quoted("{{ outcome.result }}", like.line))
    error = quoted("{{ outcome.error }}", like.line)
    write(then, "set_iter", "failure", error, like)
    if keep_error:
        write(then, "set_ctx", f"{plain_step(work.step)}_error", error, like)
    work.draft.tell(sink, "case: sink", "a storage task after a failure")


def last_runs_count(task: Mapping, like: TreeSlot) -> Sequence:
    """Retries that end in time for the rules below them to see the last failure."""
    rules = rules_in(task, like)
    for rule in rules.mappings():
        then, guard = rule.mapping("then"), rule.slot("when")
        if then is None or guard is None or then.text("do") != "retry":
            continue
        expression = expression_of(guard.text) or TRUE
        if "_attempt <" not in expression:
            attempts = plain(then.node("attempts") or node_of(1))
            guard.node = guard_slot(all_of([expression, f"_attempt < {attempts}"]), guard).node
    return rules


def _after_retries(rules: Sequence) -> int:
    found = [rule.mapping("then") for rule in rules.mappings()]
    return sum(1 for then in found if then is not None and then.text("do") == "retry")


def plain_step(step: Mapping) -> str:
    return "".join(sign if sign.isalnum() else "_" for sign in step.text("step") or "step")


def keep_status(work: Work, like: TreeSlot, *, after_success: bool) -> None:
    """Write the status of an http answer to `ctx`, where a router finds it after a failure."""
    key = f"{plain_step(work.step)}_status_code"
    rules = last_runs_count(work.task, like)
    fail_on_error(rules, like)
    for rule in rules.mappings():
        then, guard = rule.mapping("then"), rule.text("when") or ""
        if then is not None and IS_ERROR in guard and then.text("do") != "retry":
            write(then, "set_ctx", key, quoted(STATUS_CODE, like.line), like)
    if after_success:
        then = on_success(work.task, like)
        write(then, "set_ctx", key, quoted(STATUS_CODE, like.line), like)
    work.draft.left["case rules", id(work.task)] = like


def reads_envelope(entry: CaseEntry, *keys: str) -> bool:
    """Whether the guard or the args of an entry's arcs read a part of the envelope."""
    return any(
        path[0] in ("response", "this") and len(path) > 1 and path[1] in keys
        for text in _texts(entry)
        for path in paths_read(text)
    )


def _texts(entry: CaseEntry) -> Iterator[str]:
    yield guard_of(entry.expression)
    for target in entry.targets:
        yield from _texts_below(plain(target.node))


def _texts_below(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _texts_below(one)
