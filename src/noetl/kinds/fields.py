"""Input fields that several kinds have, each with the one sentence that documentation shows."""

from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import Meta


def doc(sentence: str, **bounds: Any) -> Meta:
    """What documentation, schema and editors say about an input, and the values that it takes."""
    return Meta(description=sentence, **bounds)


Auth = Annotated[str | None, doc("Name of a keychain entry or a registered credential.")]
Arguments = Annotated[dict[str, Any], doc("Values to pass, by name.")]
Environment = Annotated[
    Mapping[str, str | int | float | bool],
    doc("Environment variables; nothing else is inherited."),
]
Stdin = Annotated[Any, doc("Standard input: text as it is, anything else as JSON.")]
