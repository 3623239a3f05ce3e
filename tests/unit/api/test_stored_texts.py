"""No text of a request is stored that a database could not keep: PostgreSQL has no NUL in texts."""

from typing import Annotated

import msgspec
import pytest

from noetl.api import types as t

JSON = {"payload", "ctx", "fields", "labels", "headers", "data"}
"""Kept as JSON, where the character is escaped, or compared with what is kept so."""
ELSEWHERE = {
    "RegisterRequest.text": "the reader of YAML refuses it (DOC-7)",
    "ValidateRequest.text": "it is kept nowhere",
    "CursorRequest.text": "it is kept nowhere",
    "TestsRequest.text": "it is kept nowhere",
    "TestsRequest.tests": "it is kept nowhere",
    "TemplateRequest.template": "it is kept nowhere",
    "TokenRequest.pool": "it must be a valid name of a pool",
    "TrialRequest.at": "it must be a time, and is kept nowhere",
}

REQUESTS = [
    kind
    for name, kind in vars(t).items()
    if name.endswith("Request") and issubclass(kind, msgspec.Struct)
]


def texts_of(kind: msgspec.inspect.Type) -> list[msgspec.inspect.StrType]:
    if isinstance(kind, msgspec.inspect.StrType):
        return [kind]
    if isinstance(kind, msgspec.inspect.UnionType):
        return [text for one in kind.types for text in texts_of(one)]
    if isinstance(kind, msgspec.inspect.ListType):
        return texts_of(kind.item_type)
    return []


@pytest.mark.parametrize("kind", REQUESTS, ids=lambda kind: kind.__name__)
def test_every_text_of_a_request_is_one_that_can_be_stored(kind: type[msgspec.Struct]) -> None:
    about = msgspec.inspect.type_info(kind)
    assert isinstance(about, msgspec.inspect.StructType)
    for field in about.fields:
        name = f"{kind.__name__}.{field.name}"
        if field.name in JSON or name in ELSEWHERE:
            continue
        for text in texts_of(field.type):
            assert text.pattern is not None, name
            for said in ("\0", "a\0", "s3://\0", "s3://bucket/a\0b", "gs://b\0"):
                with pytest.raises(msgspec.ValidationError):
                    msgspec.convert(said, Annotated[str, msgspec.Meta(pattern=text.pattern)])
