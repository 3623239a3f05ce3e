"""The kind that talks to NATS."""

from typing import Annotated, Any, Literal

from noetl.kinds.fields import Auth, doc
from noetl.kinds.kind import Inputs, Kind


class NatsInputs(Inputs, frozen=True, kw_only=True):
    """One operation: a message, a key of a key-value bucket, or an object."""

    operation: Annotated[
        Literal[
            "publish",
            "request",
            "kv_get",
            "kv_put",
            "kv_delete",
            "kv_keys",
            "object_get",
            "object_put",
            "object_delete",
        ],
        doc("What to do."),
    ]
    subject: Annotated[str | None, doc("Subject of a message.")] = None
    bucket: Annotated[str | None, doc("Bucket of keys or objects.")] = None
    key: Annotated[str | None, doc("Key, or name of the object.")] = None
    value: Annotated[Any, doc("What to send or store: text as it is, else as JSON.")] = None
    headers: Annotated[dict[str, str], doc("Headers of a message.")] = {}
    ack: Annotated[bool, doc("Whether `publish` waits until a stream has kept the message.")] = (
        False
    )
    create: Annotated[bool, doc("Whether `kv_put` and `object_put` make a missing bucket.")] = False
    url: Annotated[str | None, doc("Server; the credential may say it too.")] = None
    auth: Auth = None


NATS = Kind(
    "nats",
    NatsInputs,
    "Publish, request, and keep keys and objects in NATS.",
    block="nats",
    tells=("code", "description"),
    knobs=("client_retries", "timeout.connect", "timeout.read"),
    needs={
        **dict.fromkeys(("publish", "request"), ("subject",)),
        **dict.fromkeys(("kv_get", "kv_put", "kv_delete"), ("bucket", "key")),
        **dict.fromkeys(("object_get", "object_put", "object_delete"), ("bucket", "key")),
        "kv_keys": ("bucket",),
    },
    extra="nats",
)
