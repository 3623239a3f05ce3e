"""
A Petri net as small as can be: what joins may do, said again from the language's own words.

It reads a log and knows nothing of the code that wrote it. Tokens at a join have a place in a
round: how often their ancestry passed it, and their number from their source in that pass.
"""

from collections import defaultdict

from noetl.messages import events as e
from noetl.playbook.model import Join
from noetl.playbook.plan import Plan

Round = tuple[str, int, int]
"""Join, pass, number."""


class Net:
    """The joins of a plan, and the tokens that stand before them."""

    def __init__(self, plan: Plan) -> None:
        self.joins: dict[str, Join] = {
            name: step.join for name, step in plan.steps.items() if step.join is not None
        }
        self.gated = {name for name, step in plan.steps.items() if step.admission is not None}
        """Joins that can be complete and still be refused."""
        self.arrived: dict[tuple[str, int, str], int] = defaultdict(int)
        self.standing: dict[Round, dict[str, str]] = defaultdict(dict)
        self.place: dict[str, tuple[Round, str]] = {}
        self.fired: set[Round] = set()

    def read(self, event: e.Event) -> None:
        match event:
            case e.TokenCreated(step=step, source=str(source)) if step in self.joins:
                self.arrive(event, source)
            case e.StepScheduled(step=step) if step in self.joins:
                self.fire(event, self.joins[step])
            case e.TokenAbsorbed():
                round_, _ = self.place.pop(event.token_id)
                assert round_ in self.fired, "a token is absorbed after its round fired"
            case e.TokenDropped() if event.token_id in self.place:
                self.drop(event)

    def arrive(self, event: e.TokenCreated, source: str) -> None:
        passes = event.rounds.get(event.step, 0)
        self.arrived[event.step, passes, source] += 1
        round_ = (event.step, passes, self.arrived[event.step, passes, source])
        self.place[event.token_id] = (round_, source)
        if round_ not in self.fired:
            self.standing[round_][source] = event.token_id

    def fire(self, event: e.StepScheduled, join: Join) -> None:
        if event.tokens[0] not in self.place:  # the entry token waits for nobody
            return
        round_ = self.place[event.tokens[0]][0]
        assert round_ not in self.fired, "a round fires once"
        standing = self.standing.pop(round_)
        order = [standing[source] for source in join.sources if source in standing]
        assert event.tokens == order, "all that stand there go, in the order of `from`"
        assert len(order) >= self.needed(join)
        assert event.rounds is not None
        assert event.rounds[event.step] >= round_[1] + 1
        assert list((event.args or {})["from"]) == [s for s in join.sources if s in standing]
        self.fired.add(round_)
        for token in order:
            del self.place[token]

    def drop(self, event: e.TokenDropped) -> None:
        round_, source = self.place.pop(event.token_id)
        standing = self.standing.get(round_, {})
        if "(join)" in event.reason and event.step not in self.gated:
            needed = self.needed(self.joins[event.step])
            assert len(standing) < needed, "who waits for nobody need not wait"
        standing.pop(source, None)

    def needed(self, join: Join) -> int:
        words = {"all": len(join.sources), "any": 1}
        return join.mode if isinstance(join.mode, int) else words[join.mode]


def audit_joins(log: list[e.Event], plan: Plan) -> None:
    """T17: whatever the joins of a log did, the net allows it."""
    net = Net(plan)
    for event in log:
        net.read(event)
    assert net.place == {}, "no token is left at a join"
