"""AWS Signature Version 4, for requests with a body and without a query."""

import hashlib
import hmac
from collections.abc import Mapping
from datetime import datetime
from urllib.parse import quote, urlsplit

import msgspec

ALGORITHM = "AWS4-HMAC-SHA256"


class Signer(msgspec.Struct, frozen=True, kw_only=True):
    """Who signs, and for what."""

    access_key_id: str
    secret_access_key: str
    region: str
    service: str
    session_token: str | None = None

    def headers(
        self, method: str, url: str, body: bytes, given: Mapping[str, str], at: datetime
    ) -> dict[str, str]:
        """The given headers and those of the signature; `at` in UTC."""
        parts = urlsplit(url)
        stamp = at.strftime("%Y%m%dT%H%M%SZ")
        headers = {
            **{name.lower(): " ".join(value.split()) for name, value in given.items()},
            "host": parts.netloc,
            "x-amz-date": stamp,
        }
        if self.session_token:
            headers["x-amz-security-token"] = self.session_token
        names = sorted(headers)
        signed = ";".join(names)
        canonical = "\n".join(
            [
                method,
                quote(parts.path or "/", safe="/-_.~"),
                parts.query,
                *(f"{name}:{headers[name]}" for name in names),
                "",
                signed,
                hashlib.sha256(body).hexdigest(),
            ]
        )
        scope = f"{stamp[:8]}/{self.region}/{self.service}/aws4_request"
        digest = hashlib.sha256(canonical.encode()).hexdigest()
        signature = hmac.digest(
            self._key(stamp[:8]), f"{ALGORITHM}\n{stamp}\n{scope}\n{digest}".encode(), "sha256"
        ).hex()
        headers["authorization"] = (
            f"{ALGORITHM} Credential={self.access_key_id}/{scope}, "
            f"SignedHeaders={signed}, Signature={signature}"
        )
        return headers

    def _key(self, day: str) -> bytes:
        key = f"AWS4{self.secret_access_key}".encode()
        for part in (day, self.region, self.service, "aws4_request"):
            key = hmac.digest(key, part.encode(), "sha256")
        return key
