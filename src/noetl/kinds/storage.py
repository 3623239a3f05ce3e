"""The kinds that read and write objects in a bucket."""

from functools import partial
from typing import Annotated, Any, ClassVar, Literal

from noetl.kinds.fields import Auth, doc
from noetl.kinds.kind import Inputs, Kind


class ObjectInputs(Inputs, frozen=True, kw_only=True):
    """One operation on a bucket."""

    streams: ClassVar[tuple[str, ...]] = ("body",)
    operation: Annotated[
        Literal["get", "put", "list", "head", "copy", "delete"], doc("What to do.")
    ]
    bucket: Annotated[str, doc("Name of the bucket.")]
    key: Annotated[str | None, doc("Key of the object; all but `list` need it.")] = None
    prefix: Annotated[str | None, doc("What listed keys start with.")] = None
    source: Annotated[str | None, doc("Key that `copy` takes the object from.")] = None
    body: Annotated[Any, doc("What to put: text as it is, else as JSON.")] = None
    path: Annotated[str | None, doc("File to put, or to get into, instead of a body.")] = None
    encoding: Annotated[
        Literal["text", "json", "base64"] | None,
        doc("How bytes are written in the body; by default the content type decides."),
    ] = None
    content_type: Annotated[str | None, doc("Media type of what is put.")] = None
    auth: Auth = None
    endpoint: Annotated[str | None, doc("Another server than the usual one.")] = None


class S3Inputs(ObjectInputs, frozen=True, kw_only=True):
    """S3 and what speaks its protocol."""

    region: Annotated[str | None, doc("Region of the bucket.")] = None
    path_style: Annotated[
        bool, doc("Whether the bucket is part of the path rather than of the host name.")
    ] = True


class GcsInputs(ObjectInputs, frozen=True, kw_only=True):
    """Google Cloud Storage."""

    project: Annotated[str | None, doc("Project that is billed.")] = None


_objects = partial(
    Kind,
    tells=("bucket", "key", "etag", "size"),
    knobs=("client_retries", "timeout.connect", "timeout.read"),
    needs={
        **dict.fromkeys(("get", "put", "head", "delete"), ("key",)),
        "copy": ("key", "source"),
    },
)
S3 = _objects(
    "s3",
    S3Inputs,
    "Read and write objects in S3.",
    block="s3",
    extra="s3",
    credential="--kind s3 --field access_key_id=ID",
)
GCS = _objects(
    "gcs",
    GcsInputs,
    "Read and write objects in Google Cloud Storage.",
    block="gcs",
    extra="gcs",
    credential="--kind gcs --file service-account.json",
)
