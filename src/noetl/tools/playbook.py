"""The `playbook` tool: a child execution (TOOL-1)."""

from typing import Any

from noetl.errors import TOO_DEEP, NoetlError, PlaybookRejected, ServerRefused
from noetl.kinds.flow import PlaybookInputs
from noetl.messages.outcome import Outcome, failed, ok
from noetl.tools.frame import FramedTool
from noetl.tools.tool import ToolCall, Workplace


class PlaybookTool(FramedTool):
    """
    Starts a child and waits for it. The child's id derives from the task run, so that a task
    that is run again after a crash finds the child that it had started.
    """

    async def _run(self, call: ToolCall[PlaybookInputs], workplace: Workplace) -> Outcome:
        inputs = call.inputs
        version = None if inputs.version is None else str(inputs.version)
        try:
            child = await workplace.child(
                call, path=inputs.path, version=version, payload=inputs.args, wait=inputs.wait
            )
        except PlaybookRejected as rejected:
            first = rejected.findings[0]
            where = f"line {first.line}: {first.message}"
            return failed("playbook", f"'{inputs.path}': {rejected}; {where}")
        except NoetlError as fault:
            deep = isinstance(fault, ServerRefused) and fault.code == TOO_DEEP
            return failed("playbook" if deep else "not_found", str(fault))
        return outcome_of(child, waited=inputs.wait)


def outcome_of(child: dict[str, Any], *, waited: bool = True) -> Outcome:
    """The child's end as this task's outcome; how one ends that nobody waits for is not asked."""
    error = child.pop("error", None)
    block = {"execution_id": child["execution_id"], "status": child["status"]}
    if not waited or child["status"] in ("completed", "running"):
        return ok(child, block=block)
    message = f"child execution {child['execution_id']} {child['status']}"
    if error:
        message = f"{message}: {error.get('message', '')}"
    return failed("playbook", message, block=block, result=child, cause=error)
