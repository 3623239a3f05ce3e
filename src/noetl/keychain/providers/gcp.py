"""Secrets in GCP Secret Manager: its REST API, opened by a service account or the machine's."""

import base64
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import quote, urlencode

import msgspec
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from noetl.errors import CredentialMissing
from noetl.keychain.asking import Asking, object_in
from noetl.keychain.fields import Fields, digest, refuse_dots, register_aside
from noetl.keychain.oauth2 import seconds_in
from noetl.keychain.once import Fetched, Once

ENDPOINT = "https://secretmanager.googleapis.com"
ENDPOINT_VARIABLE = "CLOUDSDK_API_ENDPOINT_OVERRIDES_SECRETMANAGER"
TOKEN_URI = "https://oauth2.googleapis.com/token"
SCOPE = "https://www.googleapis.com/auth/cloud-platform"
METADATA = "metadata.google.internal"
JWT = "urn:ietf:params:oauth:grant-type:jwt-bearer"


class GcpProvider:
    """Provider; the key is `name`, `project/name` or `projects/…/secrets/…[/versions/…]`."""

    def __init__(
        self,
        asking: Asking,
        once: Once,
        environment: Mapping[str, str],
        now: Callable[[], float] = time.time,
    ) -> None:
        self._asking = asking
        self._once = once
        self._environment = environment
        self._now = now

    async def fetch(self, key: str, login: Fields | None) -> str:
        refuse_dots("GCP Secret Manager", key)
        account = login or self._account()
        if login and not any(map(login.get, ("private_key", "refresh_token", "token"))):
            raise CredentialMissing(
                "GCP Secret Manager: a login needs private_key, refresh_token or token; the "
                "worker's own account is used only where a playbook names none"
            )
        await register_aside(account)
        resource = self._resource(key, account)
        # By all of its fields: a login that only names the worker's account gets no token of it.
        who = ("gcp", digest(account))
        token = account.get("token") or await self._once.value(who, lambda: self._token(account))
        endpoint = account.get("endpoint") or self._environment.get(ENDPOINT_VARIABLE) or ENDPOINT
        answer = await self._asking.ask(
            "GCP Secret Manager",
            "GET",
            f"{str(endpoint).rstrip('/')}/v1/{quote(resource, safe='/')}:access",
            headers={"Authorization": f"Bearer {token}"},
        )
        payload = answer.fields.get("payload")
        if answer.status != 200 or not isinstance(payload, dict):
            self._once.drop(who)
            raise CredentialMissing(
                f"GCP Secret Manager: '{resource}' cannot be read ({answer.words()}); check the "
                "name and the role roles/secretmanager.secretAccessor"
            )
        content = base64.b64decode(str(payload.get("data", "")))
        try:
            return content.decode()
        except UnicodeDecodeError:
            return base64.b64encode(content).decode()

    def _account(self) -> Fields:
        """The file that the environment names, if it names one; else the machine's own account."""
        name = self._environment.get("GOOGLE_APPLICATION_CREDENTIALS", "")
        if not name:
            return {}
        try:
            return object_in(Path(name).read_bytes())
        except OSError as wrong:
            raise CredentialMissing(
                f"GOOGLE_APPLICATION_CREDENTIALS: {name} cannot be read: {wrong.strerror or wrong}"
            ) from None

    def _resource(self, key: str, account: Fields) -> str:
        if key.startswith("projects/"):
            return key if "/versions/" in key else f"{key}/versions/latest"
        project, _, name = key.rpartition("/")
        project = (
            project
            or self._environment.get("GOOGLE_CLOUD_PROJECT", "")
            or str(account.get("project_id") or account.get("project") or "")
        )
        if not project:
            raise CredentialMissing(
                f"GCP Secret Manager: which project has '{key}'? Write `project/{key}`, or set "
                "GOOGLE_CLOUD_PROJECT"
            )
        return f"projects/{project}/secrets/{name}/versions/latest"

    async def _token(self, account: Fields) -> Fetched:
        if account.get("private_key"):
            form = {"grant_type": JWT, "assertion": assertion(account, self._now())}
            return await self._exchange(str(account.get("token_uri") or TOKEN_URI), form)
        if account.get("refresh_token"):
            fields = ("client_id", "client_secret", "refresh_token")
            form = {field: str(account.get(field)) for field in fields}
            form["grant_type"] = "refresh_token"
            return await self._exchange(str(account.get("token_uri") or TOKEN_URI), form)
        host = self._environment.get("GCE_METADATA_HOST") or METADATA
        url = f"http://{host}/computeMetadata/v1/instance/service-accounts/default/token"
        return await self._granted("GET", url, {"Metadata-Flavor": "Google"}, None)

    async def _exchange(self, url: str, form: dict[str, str]) -> Fetched:
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        return await self._granted("POST", url, headers, urlencode(form).encode())

    async def _granted(
        self, method: str, url: str, headers: dict[str, str], body: bytes | None
    ) -> Fetched:
        answer = await self._asking.ask("GCP", method, url, headers=headers, body=body)
        token = answer.fields.get("access_token")
        if answer.status != 200 or not isinstance(token, str):
            raise CredentialMissing(
                f"GCP gave no token ({answer.words()}); check the service account, or set "
                "GOOGLE_APPLICATION_CREDENTIALS to its file"
            )
        await register_aside({"token": token})
        return Fetched(token, seconds_in(answer.fields.get("expires_in")))


def assertion(account: Fields, now: float) -> str:
    """The signed claim of a service account (RFC 7523)."""
    header = {"alg": "RS256", "typ": "JWT", "kid": account.get("private_key_id")}
    claims = {
        "iss": account.get("client_email"),
        "scope": SCOPE,
        "aud": account.get("token_uri") or TOKEN_URI,
        "iat": int(now),
        "exp": int(now) + 3600,
    }
    text = ".".join(_base64(msgspec.json.encode(part)) for part in (header, claims))
    try:
        key = load_pem_private_key(str(account["private_key"]).encode(), None)
    except (ValueError, TypeError):
        raise CredentialMissing("the service account's private_key is not a PEM key") from None
    if not isinstance(key, RSAPrivateKey):
        raise CredentialMissing("the service account's private_key is not an RSA key")
    return f"{text}.{_base64(key.sign(text.encode(), PKCS1v15(), SHA256()))}"


def _base64(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()
