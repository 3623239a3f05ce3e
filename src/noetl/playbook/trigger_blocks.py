"""Which blocks has a trigger, and which keys has each? (START)"""

from noetl.playbook.blocks import API_VERSION, METADATA
from noetl.playbook.shape import (
    Block,
    Boolean,
    Choice,
    Either,
    Field,
    Free,
    FreeMapping,
    Inside,
    Number,
    Text,
    TextList,
)

TRIGGER_KIND = "Trigger"
ENDS = ("completed", "failed", "cancelled")
SCHEMES = ("noetl", "github", "bearer")
KINDS_OF_TRIGGER = ("schedule", "webhook", "subject", "execution")
DAY, YEAR = 86_400, 366 * 86_400
"""Seconds: what lies far beyond a calendar has no time that anybody could show."""

TRIGGER = Block(
    "trigger",
    "A trigger: which playbook it starts, on what, and with which payload.",
    {
        "apiVersion": Field(Choice((API_VERSION,)), "Version of the language.", "START-1", True),
        "kind": Field(Choice((TRIGGER_KIND,)), "What the document is.", "START-1", True),
        "metadata": Field(Inside("metadata"), "Name, path and notes.", "START-1", True),
        "spec": Field(Inside("trigger spec"), "What starts what.", "START-1", True),
    },
)
TRIGGER_SPEC = Block(
    "trigger spec",
    "What starts what.",
    {
        "playbook": Field(Text(), "Path of the playbook in the catalog.", "START-1", True),
        "version": Field(Free(), "Its version; the newest if left out.", "START-1"),
        "payload": Field(
            FreeMapping(templates=True),
            "What goes into `workload`; templates see `trigger {name, at, data, headers}`.",
            "START-1",
        ),
        "on": Field(Inside("on"), "What starts it: exactly one of these.", "START-1", True),
        "policy": Field(Inside("trigger policy"), "How it begins.", "START-1"),
    },
)
ON = Block(
    "on",
    "What starts the playbook: exactly one of these.",
    {
        "schedule": Field(Inside("schedule"), "A time.", "START-3"),
        "webhook": Field(Inside("webhook"), "A call of another program.", "START-4"),
        "subject": Field(Inside("subject"), "A message of NATS.", "START-5"),
        "execution": Field(Inside("execution"), "The end of another execution.", "START-6"),
    },
    forms=tuple((kind,) for kind in KINDS_OF_TRIGGER),
)
SCHEDULE = Block(
    "schedule",
    "When it starts: exactly one of `cron`, `every` and `at`.",
    {
        "cron": Field(Text(), "Five fields, or six with seconds first.", "START-3"),
        "every": Field(
            Number(minimum=1, maximum=YEAR), "Seconds between two starts, from 1970 on.", "START-3"
        ),
        "at": Field(Text(), "One time, in RFC 3339; local without an offset.", "START-3"),
        "timezone": Field(Text(), "IANA name of the clocks.", "START-3", default="UTC"),
        "catch_up": Field(
            Choice(("none", "last", "all")),
            "Which times are started that came while no server ran.",
            "START-3",
            default="none",
        ),
        "limit": Field(
            Number(minimum=1, maximum=10_000, whole=True),
            "Missed or waiting times that are started at the most; the latest.",
            "START-3",
            default=100,
        ),
        "overlap": Field(
            Choice(("allow", "skip", "queue", "cancel_old")),
            "What a time means while the start before it still runs.",
            "START-3",
            default="allow",
        ),
        "jitter": Field(
            Number(minimum=0, maximum=DAY),
            "Seconds by which a start is later at the most.",
            "START-3",
        ),
    },
    forms=(("cron",), ("every",), ("at",)),
)
WEBHOOK = Block(
    "webhook",
    "Starts with `POST /hooks/<path of the trigger>`.",
    {
        "scheme": Field(
            Choice(SCHEMES), "How a call proves where it is from.", "START-4", default="noetl"
        ),
        "credential": Field(Text(), "The registered credential with the secret.", "START-4", True),
        "max_bytes": Field(
            Number(minimum=1, maximum=8_388_608, whole=True),
            "Largest body.",
            "START-4",
            default=1_048_576,
        ),
        "wait": Field(
            Number(minimum=0, maximum=60),
            "Seconds that the answer waits for the result; `?wait=` of a call goes first.",
            "START-4",
            default=0,
        ),
    },
)
SUBJECT = Block(
    "subject",
    "Starts with each message of a subject that JetStream keeps.",
    {
        "subject": Field(Text(), "The subject; it may hold wildcards.", "START-5", True),
        "stream": Field(
            Text(), "The stream; the one that keeps the subject, if left out.", "START-5"
        ),
        "durable": Field(Text(), "Name of the consumer; made of the path, if left out.", "START-5"),
    },
)
EXECUTION = Block(
    "execution",
    "Starts when another execution ends.",
    {
        "path": Field(Text(), "Path of its playbook; a glob.", "START-6", True),
        "status": Field(
            Either((Choice(ENDS), TextList())), "How it ended: one, or several.", "START-6"
        ),
    },
)
TRIGGER_POLICY = Block(
    "trigger policy",
    "How the trigger begins.",
    {
        "paused": Field(
            Boolean(), "Whether it waits for `noetl trigger resume`.", "START-1", default=False
        ),
    },
)

TRIGGER_BLOCKS: dict[str, Block] = {
    block.name: block
    for block in (
        TRIGGER,
        METADATA,
        TRIGGER_SPEC,
        ON,
        SCHEDULE,
        WEBHOOK,
        SUBJECT,
        EXECUTION,
        TRIGGER_POLICY,
    )
}
