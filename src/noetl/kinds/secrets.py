"""The kind that fetches a secret (KEY-3)."""

from typing import Annotated, Literal

from msgspec import Meta

from noetl.kinds.fields import Auth
from noetl.kinds.kind import Inputs, Kind


class SecretsInputs(Inputs, frozen=True, kw_only=True):
    """Which secret, and who keeps it."""

    name: Annotated[str, Meta(description="Name of the secret there.")]
    provider: Annotated[
        Literal["environment", "file", "vault", "gcp", "aws", "store"],
        Meta(description="Who keeps the secret."),
    ] = "store"
    auth: Auth = None


SECRETS = Kind(
    name="secrets", inputs=SecretsInputs, summary="Fetch a secret's value.", block="secrets"
)
