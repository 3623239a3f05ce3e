"""Sessions of browsers: a cookie does what its token may, for its own pages, until it ends."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from litestar._parsers import parse_cookie_string
from litestar.exceptions import NotAuthorizedException
from msgspec.structs import replace
from tests.support.api import SmallPlane, served

from noetl.adapters.memory.registers import MemoryTokens
from noetl.api import sessions
from noetl.api.gate import SESSION, Gate
from noetl.api.home_token import rows_of_home
from noetl.api.tokens import make_token, new_token, revoke_token
from noetl.api.types import Role
from noetl.ports.tokens import TokenRow, is_good, maker_of, session_of

OWN = {"sec-fetch-site": "same-origin"}


@asynccontextmanager
async def signed_in(
    role: Role = "operator", **made: Any
) -> AsyncIterator[tuple[SmallPlane, str, aiohttp.ClientSession, str]]:
    """A browser that has signed in: the plane, its address, the browser, the id of the token."""
    plane = SmallPlane()
    token = await make_token(plane.storage.tokens, "ada", role, **made)
    async with served(plane, auth=True) as at:
        jar = aiohttp.CookieJar(unsafe=True)  # which keeps cookies of an address
        async with aiohttp.ClientSession(cookie_jar=jar) as browser:
            body = {"token": token.token}
            async with browser.post(f"{at.url}/api/sign-in", json=body, headers=OWN) as answer:
                assert answer.status == 200, await answer.text()
                assert await answer.json() == {"auth": True, "name": "ada", "role": role}
            yield plane, at.url, browser, token.token_id


async def status_of(browser: aiohttp.ClientSession, method: str, url: str, **sent: Any) -> int:
    async with browser.request(method, url, **sent) as answer:
        return answer.status


async def test_the_cookie_is_for_the_api_alone_and_no_script_reads_it() -> None:
    async with signed_in() as (plane, url, browser, token_id):
        [kept] = list(browser.cookie_jar)
        assert (kept.key, kept["path"], kept["samesite"]) == (SESSION, "/api", "strict")
        assert kept["httponly"]
        assert not kept["secure"], "this server speaks plain HTTP"
        _, row = await plane.storage.tokens.all()
        assert row.token_id.startswith(f"{token_id}.")
        assert kept.value not in str(row), "only its digest is kept"
        assert await status_of(browser, "GET", f"{url}/api/me") == 200


async def test_over_tls_the_cookie_never_goes_in_the_clear() -> None:
    plane = SmallPlane()
    token = await make_token(plane.storage.tokens, "ada", "viewer")
    headers = {**OWN, "origin": "https://noetl.example"}
    async with served(plane, auth=True) as at, aiohttp.ClientSession() as browser:
        body = {"token": token.token}
        async with browser.post(f"{at.url}/api/sign-in", json=body, headers=headers) as answer:
            assert "Secure" in answer.headers["set-cookie"]


@pytest.mark.parametrize(
    ("method", "headers", "status"),
    [
        ("GET", {}, 200),
        ("GET", OWN, 200),
        ("GET", {"sec-fetch-site": "same-site"}, 403),
        ("GET", {"origin": "http://localhost:1"}, 403),
        ("POST", {}, 403),
        ("POST", OWN, 200),
        ("POST", {"origin": "HERE"}, 200),
        ("POST", {"origin": "null"}, 403),
        ("POST", {"sec-fetch-site": "cross-site", "origin": "HERE"}, 403),
    ],
)
async def test_only_pages_of_the_server_use_it(
    method: str, headers: dict[str, str], status: int
) -> None:
    async with signed_in() as (_, url, browser, _):
        path = "/api/me" if method == "GET" else "/api/sign-out"
        sent = {name: value.replace("HERE", url) for name, value in headers.items()}
        assert await status_of(browser, method, url + path, headers=sent) == status


async def test_it_has_the_role_of_its_token() -> None:
    async with signed_in("viewer") as (_, url, browser, _):
        asked = f"{url}/api/executions/e1/cancel"
        assert await status_of(browser, "POST", asked, json={}, headers=OWN) == 403
        assert await status_of(browser, "GET", f"{url}/api/executions") == 200


async def test_it_ends_when_the_person_signs_out() -> None:
    async with signed_in() as (plane, url, browser, _):
        [kept] = list(browser.cookie_jar)
        assert await status_of(browser, "POST", f"{url}/api/sign-out", headers=OWN) == 200
        assert list(browser.cookie_jar) == []
        stolen = {"cookie": f"{SESSION}={kept.value}"}
        assert await status_of(browser, "GET", f"{url}/api/me", headers=stolen) == 401
        first, _ = await plane.storage.tokens.all()
        assert first.revoked_at is None, "the token itself is as good as before"


async def test_it_ends_with_its_token() -> None:
    async with signed_in() as (plane, _, _, token_id):
        assert await revoke_token(plane.storage.tokens, plane.keychain, token_id)
        rows = await plane.storage.tokens.all()
        assert all(row.revoked_at is not None for row in rows)
    async with signed_in(expires_in=60.0) as (plane, _, _, _):
        token, session = await plane.storage.tokens.all()
        assert lasting(session) == lasting(token) <= 60
    async with signed_in() as (plane, _, _, _):
        _, session = await plane.storage.tokens.all()
        assert 11 * 3600 < lasting(session) <= 12 * 3600


class RevokedMeanwhile(MemoryTokens):
    """Another server revokes the token while this one still takes it for good."""

    async def add(self, row: TokenRow) -> None:
        if maker_of(row) is not None:
            await revoke_token(self, SmallPlane().keychain, str(maker_of(row)))
        await super().add(row)


async def test_no_session_outlives_a_token_that_was_revoked_while_it_began() -> None:
    """Else whoever has a stolen token has two seconds to make twelve hours of them."""
    plane = SmallPlane()
    plane.storage.tokens = RevokedMeanwhile(plane.storage.tables)  # type: ignore[attr-defined, misc]
    token = await make_token(plane.storage.tokens, "ada", "admin")
    async with served(plane, auth=True) as at, aiohttp.ClientSession() as browser:
        sent = {"json": {"token": token.token}, "headers": OWN}
        assert await status_of(browser, "POST", f"{at.url}/api/sign-in", **sent) == 401
    rows = await plane.storage.tokens.all()
    assert len(rows) == 2
    assert all(row.revoked_at is not None for row in rows)


async def test_nobody_fills_the_table_with_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "MOST", 2)
    async with signed_in() as (plane, url, browser, token_id):
        token = await make_token(plane.storage.tokens, "bob", "viewer")
        sent = {"json": {"token": token.token}, "headers": OWN}
        for _ in range(5):
            assert await status_of(browser, "POST", f"{url}/api/sign-in", **sent) == 200
        rows = await plane.storage.tokens.all()
        now = int(time.time() * 1000)
        living = [maker_of(row) for row in rows if is_good(row, row.digest, now)]
        assert sorted(filter(None, living)) == sorted([token_id, token.token_id, token.token_id])
        assert len(rows) <= 2 + 1 + 3, "what has ended goes with the next one"
        assert await status_of(browser, "GET", f"{url}/api/me") == 200


async def test_a_session_of_a_home_is_good_where_its_token_is() -> None:
    """The token of a home is for one server, and until it is replaced; so is what it began."""
    plane = SmallPlane()
    first, second = rows_of_home("noetl_first"), rows_of_home("noetl_second")
    owner = next(iter(first.values()))
    text, made = new_token("owner", "viewer", now_ms=0)
    named = session_of(owner, "ab12")
    await plane.storage.tokens.add(replace(made, token_id=named, role="admin"))
    assert (await Gate(plane.storage.tokens, first).known(text)).token_id == named
    for others in (second, {}):
        with pytest.raises(NotAuthorizedException):
            await Gate(plane.storage.tokens, others).known(text)
    assert await revoke_token(plane.storage.tokens, plane.keychain, owner.token_id)
    with pytest.raises(NotAuthorizedException):
        await Gate(plane.storage.tokens, first).known(text)


def lasting(row: TokenRow) -> float:
    assert row.expires_at is not None
    return round(row.expires_at / 1000 - time.time())


@pytest.mark.parametrize(
    ("auth", "text", "headers", "status"),
    [
        (True, "noetl_wrong", OWN, 401),
        (True, "", OWN, 422),
        (True, "WORKER", OWN, 403),
        (True, "SESSION", OWN, 403),
        (True, "GOOD", {"sec-fetch-site": "cross-site"}, 403),
        (True, "GOOD", {}, 403),
        (False, "GOOD", OWN, 400),
    ],
)
async def test_who_cannot_sign_in_is_told_why(
    auth: bool, text: str, headers: dict[str, str], status: int
) -> None:
    plane = SmallPlane()
    good = await make_token(plane.storage.tokens, "ada", "admin")
    worker = await make_token(plane.storage.tokens, "w", "worker")
    session, row = new_token("ada", "admin", now_ms=0)
    await plane.storage.tokens.add(replace(row, token_id=f"{good.token_id}.ab12"))
    given = {"GOOD": good.token, "WORKER": worker.token, "SESSION": session}.get(text, text)
    async with (
        served(plane, auth=auth) as at,
        aiohttp.ClientSession() as browser,
        browser.post(f"{at.url}/api/sign-in", json={"token": given}, headers=headers) as answer,
    ):
        assert answer.status == status
        assert "set-cookie" not in answer.headers
        assert (await answer.json())["error"]["message"]


async def test_without_auth_everybody_may_everything() -> None:
    async with (
        served(SmallPlane()) as at,
        aiohttp.ClientSession() as browser,
        browser.get(f"{at.url}/api/me") as answer,
    ):
        assert await answer.json() == {"auth": False, "name": "", "role": "admin"}


HOSTILE = 'a="' + "\\" * 200 + '"'
"""Python unquotes it in a time that grows by the square of its length: a minute for 60 KB."""


async def test_cookies_of_others_are_not_read() -> None:
    before = parse_cookie_string.cache_info().misses
    async with signed_in() as (_, url, browser, _):
        [kept] = list(browser.cookie_jar)
        browser.cookie_jar.clear()
        for cookies, status in (
            (HOSTILE, 401),
            (f"{HOSTILE}; {SESSION}={kept.value}; b=c=d; ;=", 200),
            (f"{SESSION}={kept.value};x", 200),
            (f"not_{SESSION}={kept.value}", 401),
            (f"{SESSION}=", 401),
            (f"{SESSION}", 401),
        ):
            sent = {"cookie": cookies}
            assert await status_of(browser, "GET", f"{url}/api/me", headers=sent) == status, cookies
    assert parse_cookie_string.cache_info().misses == before
