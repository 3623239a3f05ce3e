"""The blocks of limits over all executions (LIMIT-1)."""

from noetl.playbook.shape import Block, Choice, Either, Field, Inside, Number, Template, Text

COUNT = Number(minimum=1, whole=True)

LIMIT = Block(
    "limit",
    "How much runs at once, or begins in a time, over all executions of the playbook.",
    {
        "at_once": Field(COUNT, "How many run at once, for each key.", "LIMIT-1"),
        "total": Field(COUNT, "How many run at once over all keys.", "LIMIT-1"),
        "per": Field(Inside("limit per"), "How many begin in a time, for each key.", "LIMIT-1"),
        "key": Field(Text(), "What is counted apart; a template.", "LIMIT-1"),
        "over": Field(
            Choice(("queue", "refuse", "cancel_old")),
            "What becomes of a start above the limit.",
            "LIMIT-2",
            default="queue",
        ),
        "priority": Field(
            Either((Number(whole=True), Template())),
            "The highest goes first.",
            "LIMIT-4",
            default=0,
        ),
    },
    requires_any=("at_once", "total", "per"),
)
LIMIT_PER = Block(
    "limit per",
    "How many may begin in how many seconds.",
    {
        "count": Field(COUNT, "How many.", "LIMIT-1", True),
        "seconds": Field(Number(minimum=0), "In how many seconds.", "LIMIT-1", True),
    },
)
