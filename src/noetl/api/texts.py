"""The text of a playbook in a request: as YAML itself, or in a JSON object."""

from typing import Any, TypeVar

import msgspec
from litestar.exceptions import HTTPException, ValidationException

from noetl.api.context import Asking
from noetl.api.types import RegisterRequest, ValidateRequest

YAML = ("text/yaml", "application/yaml", "application/x-yaml", "text/x-yaml")
TAKEN = (*YAML, "application/json")
LARGEST = 2 * 1024 * 1024
"""Bytes of a playbook (DOC-7); of a JSON object around one, twice that."""

T = TypeVar("T")
WithText = TypeVar("WithText", RegisterRequest, ValidateRequest)


async def text_in(request: Asking, type: type[WithText], **more: Any) -> WithText:
    """What a request holds beside its text, or the text alone as YAML."""
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media in YAML:
        return type(text=await yaml_in(request), **more)
    return await decoded(request, type)


async def decoded(request: Asking, type: type[T]) -> T:
    """The body as a JSON value of this type."""
    body = await request.body()
    try:
        return msgspec.json.decode(body, type=type)
    except msgspec.ValidationError as wrong:
        raise ValidationException(str(wrong)) from None
    except (msgspec.DecodeError, UnicodeError, RecursionError) as wrong:
        raise HTTPException(status_code=400, detail=f"the body is not JSON: {wrong}") from None


async def yaml_in(request: Asking) -> str:
    body = await request.body()
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise HTTPException(status_code=400, detail="the body is not text in UTF-8") from None


def refuse_large(text: str) -> str:
    if len(text) > LARGEST or len(text.encode("utf-8", "surrogatepass")) > LARGEST:
        raise HTTPException(
            status_code=413, detail=f"the playbook is larger than {LARGEST:,} bytes"
        )
    return text
