"""OAuth2 client credentials against a token endpoint on loopback."""

import asyncio
import base64
from typing import Any

import pytest
from tests.unit.keychain.conftest import Asker, TokenServer

from noetl.errors import CredentialMissing, CredentialUnavailable
from noetl.keychain.oauth2 import AccessTokens, seconds_in
from noetl.keychain.once import Once
from noetl.masking import MASK, Masking

pytestmark = pytest.mark.rule("KEY-1")


def client(server: TokenServer, **more: Any) -> dict[str, Any]:
    return {"token_url": server.url, "client_id": "me:1", "client_secret": "s3/cret", **more}


async def test_id_and_secret_go_into_the_header(token_server: TokenServer, asking: Asker) -> None:
    masking = Masking()
    tokens = AccessTokens(asking, Once(), masking)
    token = await tokens.token("api", client(token_server, scope=["read", "write"]))
    assert token == "issued-token-1"
    form, header = token_server.seen[0]
    assert form == {"grant_type": "client_credentials", "scope": "read write"}
    # RFC 6749 §2.3.1: encoded as in a form before they are joined.
    assert base64.b64decode(header.removeprefix("Basic ")) == b"me%3A1:s3%2Fcret"
    assert masking.masked(f"got {token}") == f"got {MASK}"


async def test_or_into_the_body(token_server: TokenServer, asking: Asker) -> None:
    fields = client(token_server, client_auth="body", audience="api.example")
    await AccessTokens(asking, Once()).token("api", fields)
    form, header = token_server.seen[0]
    assert header == ""
    assert form == {
        "grant_type": "client_credentials",
        "audience": "api.example",
        "client_id": "me:1",
        "client_secret": "s3/cret",
    }


async def test_one_fetch_for_many_callers(token_server: TokenServer, asking: Asker) -> None:
    tokens = AccessTokens(asking, Once())
    fields = client(token_server)
    got = await asyncio.gather(*(tokens.token("api", fields) for _ in range(10)))
    assert set(got) == {"issued-token-1"}
    assert await tokens.token("api", {**fields, "scope": "other"}) == "issued-token-2"
    assert token_server.given == 2


async def test_a_token_is_renewed_before_it_runs_out_and_old_ones_are_forgotten(
    token_server: TokenServer, asking: Asker
) -> None:
    at = [0.0]
    masking = Masking()
    tokens = AccessTokens(asking, Once(lambda: at[0]), masking)
    token_server.life = 600
    for number in range(1, 5):
        assert await tokens.token("api", client(token_server)) == f"issued-token-{number}"
        at[0] += 541
    text = " ".join(f"issued-token-{number}" for number in range(1, 5))
    # The last two may still open something.
    assert masking.masked(text) == f"issued-token-1 issued-token-2 {MASK} {MASK}"


@pytest.mark.parametrize(
    ("status", "fault", "says"),
    [
        (401, CredentialMissing, "gave no token .401: invalid_client.; check client_id"),
        (400, CredentialMissing, "gave no token"),
        (503, CredentialUnavailable, "has trouble"),
    ],
)
async def test_a_refusal_says_whose_it_is(
    status: int, fault: type[Exception], says: str, token_server: TokenServer, asking: Asker
) -> None:
    token_server.status = status
    with pytest.raises(fault, match=says) as refused:
        await AccessTokens(asking, Once()).token("api", client(token_server))
    assert "s3/cret" not in str(refused.value)


async def test_a_server_that_is_not_there_may_come_back(asking: Asker) -> None:
    fields = {"token_url": "http://127.0.0.1:9/", "client_id": "i", "client_secret": "s"}
    with pytest.raises(CredentialUnavailable, match="cannot be asked"):
        await AccessTokens(asking, Once()).token("api", fields)


async def test_what_lacks_a_field_is_not_sent(asking: Asker) -> None:
    with pytest.raises(CredentialMissing, match="lacks client_secret"):
        await AccessTokens(asking, Once()).token("api", {"token_url": "x", "client_id": "y"})


@pytest.mark.parametrize(
    ("told", "seconds"), [(3600, 3600.0), ("60", 60.0), (None, 300.0), ("soon", 300.0), (-1, 300.0)]
)
def test_the_life_of_a_token(told: object, seconds: float) -> None:
    assert seconds_in(told) == seconds
