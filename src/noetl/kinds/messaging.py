"""The kind that talks to NATS."""

from typing import Annotated, Any, Literal

from msgspec import Meta, field

from noetl.kinds.fields import Auth
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
        Meta(description="What to do."),
    ]
    subject: Annotated[str | None, Meta(description="Subject of a message.")] = None
    bucket: Annotated[str | None, Meta(description="Bucket of keys or objects.")] = None
    key: Annotated[str | None, Meta(description="Key, or name of the object.")] = None
    value: Annotated[
        Any, Meta(description="What to send or store: text as it is, else as JSON.")
    ] = None
    headers: Annotated[dict[str, str], Meta(description="Headers of a message.")] = field(
        default_factory=dict
    )
    ack: Annotated[
        bool, Meta(description="Whether `publish` waits until a stream has kept the message.")
    ] = False
    create: Annotated[
        bool, Meta(description="Whether `kv_put` and `object_put` make a missing bucket.")
    ] = False
    url: Annotated[str | None, Meta(description="Server; the credential may say it too.")] = None
    auth: Auth = None


NATS = Kind(
    name="nats",
    inputs=NatsInputs,
    summary="Publish, request, and keep keys and objects in NATS.",
    block="nats",
    extra="nats",
)
