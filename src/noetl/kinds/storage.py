"""The kinds that read and write objects in a bucket."""

from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta

from noetl.kinds.fields import Auth
from noetl.kinds.kind import Inputs, Kind


class ObjectInputs(Inputs, frozen=True, kw_only=True):
    """One operation on a bucket."""

    streams: ClassVar[tuple[str, ...]] = ("body",)
    operation: Annotated[
        Literal["get", "put", "list", "head", "copy", "delete"], Meta(description="What to do.")
    ]
    bucket: Annotated[str, Meta(description="Name of the bucket.")]
    key: Annotated[str | None, Meta(description="Key of the object; all but `list` need it.")] = (
        None
    )
    prefix: Annotated[str | None, Meta(description="What listed keys start with.")] = None
    source: Annotated[str | None, Meta(description="Key that `copy` takes the object from.")] = None
    body: Annotated[Any, Meta(description="What to put: text as it is, else as JSON.")] = None
    path: Annotated[
        str | None, Meta(description="File to put, or to get into, instead of a body.")
    ] = None
    encoding: Annotated[
        Literal["text", "json", "base64"] | None,
        Meta(description="How the body stands for bytes; else its content type says."),
    ] = None
    content_type: Annotated[str | None, Meta(description="Media type of what is put.")] = None
    auth: Auth = None
    endpoint: Annotated[str | None, Meta(description="Another server than the usual one.")] = None


class S3Inputs(ObjectInputs, frozen=True, kw_only=True):
    """S3 and what speaks its protocol."""

    region: Annotated[str | None, Meta(description="Region of the bucket.")] = None
    path_style: Annotated[
        bool, Meta(description="Whether the bucket stands in the path, not in the host name.")
    ] = True


class GcsInputs(ObjectInputs, frozen=True, kw_only=True):
    """Google Cloud Storage."""

    project: Annotated[str | None, Meta(description="Project that is billed.")] = None


S3 = Kind(
    name="s3", inputs=S3Inputs, summary="Read and write objects in S3.", block="s3", extra="s3"
)
GCS = Kind(
    name="gcs",
    inputs=GcsInputs,
    summary="Read and write objects in Google Cloud Storage.",
    block="gcs",
    extra="gcs",
)
