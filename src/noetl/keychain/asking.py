"""How providers and token servers are asked over HTTP: one session, short patience, clear words."""

import asyncio
from collections.abc import Mapping
from typing import Any

import aiohttp
import msgspec

from noetl.errors import CredentialUnavailable
from noetl.messages.clipping import beginning

PATIENCE = aiohttp.ClientTimeout(total=30, connect=10)
LONGEST = 1024 * 1024
"""Bytes of an answer; a secret is small."""
BUSY = frozenset({408, 425, 429, 472, 473, 500, 502, 503, 504})
"""Statuses that may be over soon; 472 and 473 are Vault's standby."""


class ProviderAnswer(msgspec.Struct, frozen=True):
    """What came back: the status, and the JSON object in the body (empty if there is none)."""

    status: int
    fields: dict[str, Any]

    def words(self) -> str:
        """What the other side said went wrong, without repeating anything of ours."""
        for name in ("errors", "error_description", "error", "message", "Message", "__type"):
            said = self.fields.get(name)
            if isinstance(said, dict):
                said = said.get("message")
            if isinstance(said, list):
                said = "; ".join(map(str, said))
            if said:
                return f"{self.status}: {beginning(str(said).strip(), 300)}"
        return str(self.status)


class Asking:
    """The session is opened with the first question."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    async def ask(
        self,
        who: str,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
    ) -> ProviderAnswer:
        """One question. CredentialUnavailable if it has no answer, or a busy one."""
        if self._session is None:
            self._session = aiohttp.ClientSession(timeout=PATIENCE, trust_env=True)
        try:
            async with self._session.request(
                method, url, headers=dict(headers or {}), data=body, allow_redirects=False
            ) as response:
                content = await response.content.read(LONGEST)
                answer = ProviderAnswer(response.status, object_in(content))
        except TimeoutError:
            raise CredentialUnavailable(f"{who} at {url} did not answer in time") from None
        except (aiohttp.ClientError, OSError, ValueError, asyncio.IncompleteReadError) as fault:
            reason = str(fault) or type(fault).__name__
            raise CredentialUnavailable(f"{who} at {url} cannot be asked: {reason}") from None
        if answer.status in BUSY:
            raise CredentialUnavailable(f"{who} at {url} has trouble ({answer.words()})")
        return answer

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None


def object_in(content: bytes) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(content)
    except (msgspec.DecodeError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
