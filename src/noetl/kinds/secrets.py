"""The kind that fetches a secret (KEY-3)."""

from typing import Annotated, Literal

from noetl.kinds.fields import Auth, doc
from noetl.kinds.kind import Inputs, Kind


class SecretsInputs(Inputs, frozen=True, kw_only=True):
    """Which secret, and who keeps it."""

    name: Annotated[str, doc("Name of the secret there.")]
    provider: Annotated[
        Literal["environment", "file", "vault", "gcp", "aws", "store"], doc("Who keeps the secret.")
    ] = "store"
    auth: Auth = None


SECRETS = Kind(
    "secrets",
    SecretsInputs,
    "Fetch a secret's value.",
    block="secrets",
    tells=("provider", "name"),
    knobs=(),
)
