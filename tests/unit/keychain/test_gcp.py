"""GCP Secret Manager: its REST API on loopback, and the three ways to a token."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from tests.support.app_server import serve
from tests.unit.keychain.conftest import Asker

from noetl.errors import CredentialMissing
from noetl.keychain.once import Once
from noetl.keychain.providers.gcp import ENDPOINT_VARIABLE, JWT, GcpProvider, assertion

pytestmark = pytest.mark.rule("KEY-3")

KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
PEM = KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def decoded(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


class Gcp:
    """Secret Manager, the token endpoint and the metadata server in one, as documented."""

    def __init__(self) -> None:
        self.url = ""
        self.secrets = {"projects/p/secrets/db/versions/latest": b"from-gcp"}
        self.grants: list[dict[str, str]] = []

    async def access(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if request.headers.get("Authorization") != "Bearer ya29.token-of-the-test":
            return refused(401, "UNAUTHENTICATED")
        if name not in self.secrets:
            return refused(404, "NOT_FOUND")
        content = base64.b64encode(self.secrets[name]).decode()
        return web.json_response({"name": name, "payload": {"data": content}})

    async def grant(self, request: web.Request) -> web.Response:
        form = {key: str(value) for key, value in (await request.post()).items()}
        self.grants.append(form)
        if form["grant_type"] == JWT:
            head, claims, signature = form["assertion"].split(".")
            KEY.public_key().verify(
                decoded(signature), f"{head}.{claims}".encode(), PKCS1v15(), SHA256()
            )
        return web.json_response({"access_token": "ya29.token-of-the-test", "expires_in": 3599})

    async def metadata(self, request: web.Request) -> web.Response:
        if request.headers.get("Metadata-Flavor") != "Google":
            return web.Response(status=403)
        self.grants.append({"grant_type": "metadata"})
        return web.json_response({"access_token": "ya29.token-of-the-test", "expires_in": 3599})

    @property
    def account(self) -> dict[str, Any]:
        return {
            "type": "service_account",
            "client_email": "robot@p.example",
            "private_key": PEM,
            "private_key_id": "k1",
            "project_id": "p",
            "token_uri": f"{self.url}/token",
        }


def refused(code: int, status: str) -> web.Response:
    error = {"error": {"code": code, "message": f"it is {status}", "status": status}}
    return web.json_response(error, status=code)


@pytest.fixture
def gcp() -> Iterator[Gcp]:
    server = Gcp()
    application = web.Application()
    application.router.add_get("/v1/{name:projects/.+}:access", server.access)
    application.router.add_post("/token", server.grant)
    path = "/computeMetadata/v1/instance/service-accounts/default/token"
    application.router.add_get(path, server.metadata)
    with serve(application) as url:
        server.url = url
        yield server


def provider(asking: Asker, gcp: Gcp, **more: str) -> GcpProvider:
    environment = {ENDPOINT_VARIABLE: f"{gcp.url}/", **more}
    return GcpProvider(asking, Once(), environment, now=lambda: 1_700_000_000.0)


@pytest.mark.parametrize(
    "key", ["db", "p/db", "projects/p/secrets/db", "projects/p/secrets/db/versions/latest"]
)
async def test_a_service_account_reads_a_secret(key: str, gcp: Gcp, asking: Asker) -> None:
    asked = provider(asking, gcp)
    assert await asked.fetch(key, gcp.account) == "from-gcp"
    assert await asked.fetch(key, gcp.account) == "from-gcp"
    assert len(gcp.grants) == 1
    claims = json.loads(decoded(gcp.grants[0]["assertion"].split(".")[1]))
    assert claims["iss"] == "robot@p.example"
    assert claims["aud"] == f"{gcp.url}/token"
    assert claims["exp"] - claims["iat"] == 3600


async def test_the_environment_names_the_account(gcp: Gcp, asking: Asker, tmp_path: Path) -> None:
    path = tmp_path / "account.json"
    path.write_text(json.dumps(gcp.account))
    asked = provider(asking, gcp, GOOGLE_APPLICATION_CREDENTIALS=str(path))
    assert await asked.fetch("db", None) == "from-gcp"


async def test_a_person_has_a_refresh_token(gcp: Gcp, asking: Asker) -> None:
    login = {
        "refresh_token": "1//refresh",
        "client_id": "c",
        "client_secret": "s",
        "token_uri": f"{gcp.url}/token",
    }
    assert await provider(asking, gcp).fetch("p/db", login) == "from-gcp"
    assert gcp.grants[0]["grant_type"] == "refresh_token"


async def test_a_machine_has_an_account_of_its_own(gcp: Gcp, asking: Asker) -> None:
    host = gcp.url.removeprefix("http://")
    asked = provider(asking, gcp, GCE_METADATA_HOST=host, GOOGLE_CLOUD_PROJECT="p")
    assert await asked.fetch("db", None) == "from-gcp"


async def test_bytes_that_are_no_text_come_in_base64(gcp: Gcp, asking: Asker) -> None:
    gcp.secrets["projects/p/secrets/raw/versions/latest"] = b"\xff\xfe"
    assert await provider(asking, gcp).fetch("raw", gcp.account) == "//4="


@pytest.mark.parametrize(
    ("key", "login", "says"),
    [
        ("p/none", {}, "'projects/p/secrets/none/versions/latest' cannot be read .404: it is NOT"),
        ("p/db", {"token": "stale"}, "401: it is UNAUTHENTICATED"),
        ("db", {"project_id": ""}, "which project has 'db'"),
        ("p/db", {"private_key": "no key"}, "is not a PEM key"),
    ],
)
async def test_what_it_refuses_is_said(
    key: str, login: dict[str, str], says: str, gcp: Gcp, asking: Asker
) -> None:
    with pytest.raises(CredentialMissing, match=says):
        await provider(asking, gcp).fetch(key, {**gcp.account, **login})


async def test_an_account_that_cannot_be_read_is_said(gcp: Gcp, asking: Asker) -> None:
    asked = provider(asking, gcp, GOOGLE_APPLICATION_CREDENTIALS="nowhere.json")
    with pytest.raises(CredentialMissing, match=r"nowhere\.json cannot be read"):
        await asked.fetch("p/db", None)


def test_another_kind_of_key_is_said() -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    with pytest.raises(CredentialMissing, match="not an RSA key"):
        assertion({"private_key": pem}, 0.0)


async def test_an_endpoint_in_a_login_never_gets_the_machine_s_own_token(asking: Asker) -> None:
    provider = GcpProvider(asking, Once(), {"GCE_METADATA_HOST": "127.0.0.1:1"})
    with pytest.raises(CredentialMissing, match="a login needs private_key"):
        await provider.fetch("p/db", {"endpoint": "http://127.0.0.1:1"})


@pytest.mark.parametrize("own", ["machine", "file"])
async def test_nor_does_one_that_only_claims_to_be_its_account(
    own: str, gcp: Gcp, asking: Asker, tmp_path: Path
) -> None:
    """The worker has its token; a login of the same name with another key is another."""
    (tmp_path / "account.json").write_text(json.dumps(gcp.account))
    host = gcp.url.removeprefix("http://")
    named = {
        "machine": {"GCE_METADATA_HOST": host},
        "file": {"GOOGLE_APPLICATION_CREDENTIALS": str(tmp_path / "account.json")},
    }
    asked = provider(asking, gcp, **named[own])
    assert await asked.fetch("p/db", None) == "from-gcp"
    claimed = {} if own == "machine" else {"client_email": gcp.account["client_email"]}
    login = {"private_key": "none", "endpoint": gcp.url, **claimed}
    with pytest.raises(CredentialMissing, match="is not a PEM key"):
        await asked.fetch("p/db", login)


async def test_no_key_leads_elsewhere_in_the_api(gcp: Gcp, asking: Asker) -> None:
    with pytest.raises(CredentialMissing, match="is not the name of a secret"):
        await provider(asking, gcp).fetch("projects/p/secrets/../../q/versions/1", gcp.account)
