"""What every provider of secrets is: a name in, the text of the secret out."""

from typing import Protocol

from noetl.keychain.fields import Fields


class Provider(Protocol):
    """
    - `fetch` returns the text of the secret; JSON where it has several fields;
    - CredentialMissing: there is none, or it may not be read; CredentialUnavailable: not now;
    - `login` are the fields of the credential that opens the provider; None: the environment's.
    """

    async def fetch(self, key: str, login: Fields | None) -> str: ...
