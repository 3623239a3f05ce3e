"""Secrets in AWS Secrets Manager, asked over HTTPS with signed requests."""

import base64
import hashlib
import hmac
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from urllib.parse import quote, urlsplit

import msgspec

from noetl.errors import CredentialMissing, CredentialUnavailable
from noetl.keychain.asking import Asking, ProviderAnswer
from noetl.keychain.fields import Fields, filled, register_aside

FROM = {
    "access_key_id": ("AWS_ACCESS_KEY_ID",),
    "secret_access_key": ("AWS_SECRET_ACCESS_KEY",),
    "session_token": ("AWS_SESSION_TOKEN",),
    "region": ("AWS_REGION", "AWS_DEFAULT_REGION"),
    "endpoint_url": ("AWS_ENDPOINT_URL_SECRETS_MANAGER", "AWS_ENDPOINT_URL"),
}
"""Field of a credential of kind aws or s3 → the variables that stand for it."""
REGION = re.compile(r"[a-z0-9-]{1,64}")
BUSY = ("ThrottlingException", "InternalServiceError", "ServiceUnavailable")


class AwsProvider:
    """Provider; the key is the secret's name or ARN."""

    def __init__(
        self,
        asking: Asking,
        environment: Mapping[str, str],
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._asking = asking
        self._environment = environment
        self._now = now

    async def fetch(self, key: str, login: Fields | None) -> str:
        access = await self._access(login, key)
        url = access["endpoint_url"] or f"https://secretsmanager.{access['region']}.amazonaws.com/"
        signer = Signer(
            access_key_id=str(access["access_key_id"]),
            secret_access_key=str(access["secret_access_key"]),
            session_token=access["session_token"],
            region=str(access["region"]),
            service="secretsmanager",
        )
        body = msgspec.json.encode({"SecretId": key})
        given = {
            "Content-Type": "application/x-amz-json-1.1",
            "X-Amz-Target": "secretsmanager.GetSecretValue",
        }
        headers = signer.headers("POST", url, body, given, self._now())
        answer = await self._asking.ask(
            "AWS Secrets Manager", "POST", url, headers=headers, body=body
        )
        return text_in(answer, key)

    async def _access(self, login: Fields | None, key: str) -> Fields:
        access = filled(login, self._environment, FROM, "endpoint_url")
        if key.startswith("arn:"):  # it says the region itself
            access["region"] = key.split(":")[3]
        missing = [
            field for field in ("access_key_id", "secret_access_key", "region") if not access[field]
        ]
        if missing:
            raise CredentialMissing(
                f"AWS Secrets Manager needs {', '.join(missing)}: set AWS_ACCESS_KEY_ID, "
                "AWS_SECRET_ACCESS_KEY and AWS_REGION, or name a credential of kind aws in `auth`"
            )
        if not REGION.fullmatch(str(access["region"])):  # it becomes a part of the address
            raise CredentialMissing(f"'{access['region']}' is not a region such as eu-west-1")
        await register_aside(access)
        return access


def text_in(answer: ProviderAnswer, key: str) -> str:
    """The secret in the answer: text, or bytes in base64 that may be text."""
    text = answer.fields.get("SecretString")
    if answer.status == 200 and isinstance(text, str):
        return text
    if answer.status == 200 and isinstance(answer.fields.get("SecretBinary"), str):
        encoded: str = answer.fields["SecretBinary"]
        try:
            return base64.b64decode(encoded).decode()
        except ValueError:
            return encoded
    kind = str(answer.fields.get("__type", "")).rpartition("#")[2]
    said = f"AWS Secrets Manager: '{key}' cannot be read ({kind or 'error'}, {answer.words()})"
    if kind in BUSY:
        raise CredentialUnavailable(said)
    raise CredentialMissing(f"{said}; check the name, the region and the policy of the key")


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
