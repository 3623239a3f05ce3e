"""Files of a multipart form, taken from the playbook's folder or written in the playbook."""

import base64
import binascii
import mimetypes
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

import aiohttp
import msgspec

from noetl.tools.refusal import Refusal

PathOf = Callable[[str], Path]
"""The file that a path of the task means (`Call.path`)."""


class Upload(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One file: `path` below the playbook's folder, or `content` with a `filename`."""

    path: str | None = None
    content: str | None = None
    filename: str | None = None
    content_type: str | None = None
    encoding: str | None = None
    """`base64` where `content` stands for bytes."""


def multipart(
    fields: Sequence[tuple[str, str]],
    files: Mapping[str, Any],
    path_of: PathOf,
    opened: ExitStack,
) -> aiohttp.MultipartWriter:
    """The form with its files; what is opened here is closed with `opened`."""
    writer = aiohttp.MultipartWriter("form-data")
    for name, text in fields:
        writer.append(text).set_content_disposition("form-data", name=name)
    for name, given in files.items():
        for one in given if isinstance(given, list) else [given]:
            upload = upload_of(name, one)
            content, filename = content_of(name, upload, path_of, opened)
            content_type = upload.content_type or mimetypes.guess_type(filename)[0]
            headers = {"Content-Type": content_type or "application/octet-stream"}
            part = writer.append(content, headers)
            part.set_content_disposition("form-data", name=name, filename=filename)
    return writer


def upload_of(name: str, given: Any) -> Upload:
    try:
        upload = msgspec.convert({"path": given} if isinstance(given, str) else given, Upload)
    except msgspec.ValidationError as fault:
        raise Refusal("input", f"file '{name}': {fault}; expected a path or a mapping") from None
    if (upload.path is None) == (upload.content is None):
        raise Refusal("input", f"file '{name}' needs either 'path' or 'content'")
    if upload.encoding not in (None, "base64"):
        raise Refusal("input", f"file '{name}': encoding '{upload.encoding}' is not 'base64'")
    return upload


def content_of(
    name: str, upload: Upload, path_of: PathOf, opened: ExitStack
) -> tuple[bytes | IO[bytes], str]:
    if upload.path is not None:
        source = path_of(upload.path)
        return opened.enter_context(open_file(source)), upload.filename or source.name
    assert upload.content is not None
    filename = upload.filename or name
    if upload.encoding is None:
        return upload.content.encode(), filename
    try:
        return base64.b64decode(upload.content, validate=True), filename
    except binascii.Error as fault:
        raise Refusal("input", f"file '{name}' is no base64 text: {fault}") from None


def open_file(source: Path) -> IO[bytes]:
    try:
        return source.open("rb")
    except OSError as fault:
        raise Refusal("not_found", f"cannot read {source}: {fault.strerror}") from None
