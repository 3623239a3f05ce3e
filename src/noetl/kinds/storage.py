"""The kinds that read and write objects in a bucket."""

from typing import Annotated, Any, Literal

from msgspec import Meta

from noetl.kinds.fields import Auth
from noetl.kinds.kind import Inputs, Kind


class ObjectInputs(Inputs, frozen=True, kw_only=True):
    """One operation on a bucket."""

    operation: Annotated[
        Literal["read", "write", "list", "delete", "exists", "upload", "download"],
        Meta(description="What to do; upload and download move files."),
    ]
    bucket: Annotated[str, Meta(description="Name of the bucket.")]
    key: Annotated[str | None, Meta(description="Key of the object.")] = None
    prefix: Annotated[str | None, Meta(description="What listed keys start with.")] = None
    body: Annotated[Any, Meta(description="What to write: text as it is, else as JSON.")] = None
    path: Annotated[str | None, Meta(description="Local file to upload or download.")] = None
    content_type: Annotated[str | None, Meta(description="Media type of what is written.")] = None
    auth: Auth = None
    endpoint: Annotated[str | None, Meta(description="Another server than the usual one.")] = None


class S3Inputs(ObjectInputs, frozen=True, kw_only=True):
    """S3 and what speaks its protocol."""

    region: Annotated[str | None, Meta(description="Region of the bucket.")] = None


class GcsInputs(ObjectInputs, frozen=True, kw_only=True):
    """Google Cloud Storage."""

    project: Annotated[str | None, Meta(description="Project that is billed.")] = None


S3 = Kind(name="s3", inputs=S3Inputs, summary="Read and write objects in S3.", block="s3")
GCS = Kind(
    name="gcs",
    inputs=GcsInputs,
    summary="Read and write objects in Google Cloud Storage.",
    block="gcs",
    extra="gcs",
)
