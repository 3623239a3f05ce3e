"""Waits and signals of the reference model (WAIT-1 to WAIT-5)."""

from typing import Any

from tests.model.expressions import TemplateFault, holds
from tests.model.pipelines import Differs, Pipeline, Tree, fault, same

from noetl.messages import events as e

BY = {"seconds": "timer", "until": "timer", "signal": "signal", "approval": "approval"}


class Wait:
    """One task that waits: its pipeline, and what can end it."""

    def __init__(self, pipeline: Pipeline) -> None:
        task = pipeline.task
        one = {key: task[key] for key in BY if key in task}
        if "when" in task:
            one["when"] = task["when"]
        self.options: dict[str, Tree] = task.get("any") or {"": one}
        self.timed = "timeout" in task
        self.scope = pipeline.scope()
        self.taken: Tree | None = None

    def awaits(self, by: str) -> bool:
        return any(BY[key] == by for option in self.options.values() for key in option if key in BY)

    def takes(self, signal: Tree) -> bool:
        """Whether one of its options wants the signal (WAIT-4)."""
        for option in self.options.values():
            if option.get("signal") == signal["name"]:
                try:
                    if holds(option.get("when", True), {**self.scope, "signal": signal}):
                        return True
                except TemplateFault:
                    return True
        return False


class Mailbox:
    """Who waits, in the order of their beginning, and the signals that nobody has taken."""

    def __init__(self) -> None:
        self.waiting: dict[str, Wait] = {}
        self.kept: list[Tree] = []

    def begin(self, event: e.WaitStarted, pipeline: Pipeline) -> None:
        wait = Wait(pipeline)
        self.waiting[event.task_run_id] = wait
        for signal in self.kept:
            if wait.takes(signal):
                self.kept.remove(signal)
                wait.taken = signal
                return

    def signal(self, event: e.SignalReceived) -> None:
        signal = {"name": event.signal, "data": event.content, "by": event.sender}
        for wait in self.waiting.values():
            if wait.taken is None and wait.takes(signal):
                wait.taken = signal
                same("whether it is kept", False, event.kept)
                return
        self.kept.append(signal)
        same("whether it is kept", True, event.kept)

    def forget(self, step_run_id: str) -> None:
        """A run that was stopped waits for nothing, whatever it had asked for."""
        own = f"{step_run_id.partition('.')[0]}."
        self.waiting = {name: it for name, it in self.waiting.items() if not name.startswith(own)}

    def end(self, event: e.WaitDone) -> Tree:
        """What came of a wait; the outcome of its task (WAIT-5)."""
        wait = self.waiting.pop(event.task_run_id)
        if wait.taken is not None:
            same("what ended the wait", "signal", event.by)
            same("what came", wait.taken["data"], event.result)
            return outcome(wait.taken["data"])
        if event.by == "timeout":
            if not wait.timed:
                raise Differs("it has no timeout")
            return {"status": "error", "result": None, "error": fault("timeout")}
        if event.by != "timer" or not wait.awaits("timer"):
            raise Differs(f"it does not wait for a {event.by}")
        return outcome(event.result)


def outcome(result: Any) -> Tree:
    return {"status": "ok", "result": result, "error": None}
