"""Tests of this folder may be `async def`."""

from collections.abc import Iterator

import pytest
from aiohttp import web
from tests.support.app_server import serve
from tests.support.asynchronous import pytest_pyfunc_call  # noqa: F401
from tests.support.vault_server import VaultServer

from noetl.keychain.asking import Asking


class Asker(Asking):
    """Closed by the loop of its test."""

    async def close_all(self) -> None:
        await self.close()


@pytest.fixture
def asking() -> Asker:
    return Asker()


class Vault(VaultServer):
    url = ""


@pytest.fixture
def vault() -> Iterator[Vault]:
    server = Vault()
    with serve(server.application) as url:
        server.url = url
        yield server


class TokenServer:
    """A token endpoint of OAuth2: it gives out numbered tokens."""

    def __init__(self) -> None:
        self.url = ""
        self.given = 0
        self.life: object = 3600
        self.status = 200
        self.seen: list[tuple[dict[str, str], str]] = []

    async def grant(self, request: web.Request) -> web.Response:
        form = {key: str(value) for key, value in (await request.post()).items()}
        self.seen.append((form, request.headers.get("Authorization", "")))
        if self.status != 200:
            return web.json_response({"error": "invalid_client"}, status=self.status)
        self.given += 1
        token = {"access_token": f"issued-token-{self.given}", "token_type": "Bearer"}
        return web.json_response({**token, "expires_in": self.life})


@pytest.fixture
def token_server() -> Iterator[TokenServer]:
    server = TokenServer()
    application = web.Application()
    application.router.add_post("/token", server.grant)
    with serve(application) as url:
        server.url = f"{url}/token"
        yield server
