"""Input fields that several kinds have, each with the one sentence that documentation shows."""

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

Auth = Annotated[
    str | None,
    msgspec.Meta(description="Name of a keychain entry or a registered credential."),
]
Arguments = Annotated[
    dict[str, Any],
    msgspec.Meta(description="Values by name that are handed over."),
]
Environment = Annotated[
    Mapping[str, str | int | float | bool],
    msgspec.Meta(description="Environment variables; nothing else is inherited."),
]
Stdin = Annotated[
    Any,
    msgspec.Meta(description="Standard input: text as it is, anything else as JSON."),
]
