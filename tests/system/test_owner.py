"""A server asks everybody for a token; whoever owns its home has one already."""

import asyncio
import json
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from tests.system.program import HELLO
from tests.system.servers import Node, node

from noetl.api.home_token import FILE, at_home, home_token, is_same, worker_token
from noetl.client.async_client import AsyncClient
from noetl.client.client import Client
from noetl.errors import ServerRefused


def status_of(url: str, token: str = "", method: str = "GET") -> int:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    asked = urllib.request.Request(url, headers=headers, method=method)
    try:
        with urllib.request.urlopen(asked) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as refused:
        return refused.code


@pytest.mark.rule("SRV-1", "CLI-2")
def test_a_server_as_it_comes_lets_in_its_owner_and_nobody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    with node(home, workers=1) as up:
        stranger = Node(tmp_path / "other")
        assert stranger.here("register", HELLO, NOETL_SERVER=up.url).code == 3
        assert (home / FILE).stat().st_mode & 0o777 == 0o600
        assert up.here("register", HELLO, NOETL_SERVER=up.url).code == 0
        assert up.here("execute", "examples/hello", "--wait", NOETL_SERVER=up.url).code == 0
        by_name = up.url.replace("127.0.0.1", "localhost")
        assert at_home(by_name, home) == (up.url, (home / FILE).read_text().strip())
        [listed] = up.here("list", "--json", NOETL_SERVER=by_name).objects()
        assert listed["status"] == "completed"
        assert up.here("worker", "start").code == 0
        token = (home / FILE).read_text().strip()
        for_workers = worker_token(token)
        assert status_of(f"{up.url}/api/worker/hello", for_workers) == 200
        assert status_of(f"{up.url}/api/catalog", for_workers) == 403
        assert status_of(f"{up.url}/api/worker/hello", token) == 403
        assert token not in (home / "run" / "server.log").read_text() + json.dumps(up.status())
        monkeypatch.setenv("NOETL_HOME", str(home))
        with Client(up.url) as client:
            assert client.catalog().entries
        asyncio.run(_asked(up.url))
        monkeypatch.setenv("NOETL_HOME", str(tmp_path / "other"))
        with Client(up.url) as client, pytest.raises(ServerRefused, match="NOETL_TOKEN"):
            client.catalog()
    # The server has ended: whoever listens there now is not shown the token.
    assert at_home(up.url, home) == (up.url, None)
    with node(home, workers=0):
        assert (home / FILE).read_text().strip() == token


async def _asked(url: str) -> None:
    async with AsyncClient(url) as client:
        assert (await client.catalog()).entries


def test_who_wants_an_open_server_says_so(tmp_path: Path) -> None:
    with node(tmp_path, "--open", workers=1) as up:
        assert not (tmp_path / FILE).exists()
        assert up.there("register", HELLO).code == 0
        assert up.there("execute", "examples/hello", "--wait").code == 0


def test_a_token_that_others_could_read_is_made_anew(tmp_path: Path) -> None:
    first = home_token(tmp_path)
    assert home_token(tmp_path) == first
    (tmp_path / FILE).chmod(0o644)
    assert home_token(tmp_path) != first
    assert (tmp_path / FILE).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("url", "its", "same"),
    [
        ("http://127.0.0.1:8765", "http://127.0.0.1:8765", True),
        ("http://localhost:8765/", "http://127.0.0.1:8765", True),
        ("http://[::1]:8765", "http://0.0.0.0:8765", True),
        ("http://127.0.0.1:8766", "http://127.0.0.1:8765", False),
        ("http://127.0.0.2:8765", "http://127.0.0.1:8765", False),
        ("http://[::1]:8765", "http://127.0.0.1:8765", False),
        ("https://127.0.0.1:8765", "http://127.0.0.1:8765", False),
        ("http://evil.example:8765", "http://127.0.0.1:8765", False),
        ("http://evil.example:8765", "http://0.0.0.0:8765", False),
        ("http://127.0.0.1.evil.example:8765", "http://127.0.0.1:8765", False),
        ("http://127.0.0.1:x", "http://127.0.0.1:8765", False),
        ("", "http://127.0.0.1:8765", False),
    ],
)
def test_the_token_of_a_home_goes_to_its_own_server_only(url: str, its: str, same: bool) -> None:
    assert is_same(url, its) is same


def test_a_node_of_up_needs_no_further_step(tmp_path: Path) -> None:
    here = Node(tmp_path)
    up = here.here("up", "--detach", "--workers", "1", "--port", "0", "--json")
    try:
        assert up.code == 0, up
        url = up.objects()[0]["url"]
        assert here.here("register", HELLO, NOETL_SERVER=url).code == 0
        assert here.here("execute", "examples/hello", "--wait", NOETL_SERVER=url).code == 0
    finally:
        assert here.here("down").code == 0
