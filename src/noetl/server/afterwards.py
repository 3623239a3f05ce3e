"""What is said to whoever orders something of an execution that has ended (NEXT-8, WAIT-4)."""

INSTEAD = {
    "completed": ("completed", "run a step of it again: noetl restart {id} --from STEP"),
    "failed": ("failed", "run again what failed: noetl restart {id}"),
    "cancelled": ("was cancelled", "go on with what was stopped: noetl restart {id}"),
}


def ended_words(execution_id: str, status: str, at: str | None, what: str) -> str:
    """How it ended and when, that nothing is left to do `what` with, and what can be done."""
    since = "" if at is None else f" at {at}"
    nothing = f"there is nothing to {what}; {again_words(execution_id, status)}"
    return f"execution {execution_id} {INSTEAD[status][0]}{since}: {nothing}"


def again_words(execution_id: str, status: str) -> str:
    """The command that takes over what it recorded (RST)."""
    return INSTEAD[status][1].format(id=execution_id)
