"""The pages of the UI beside the API: what they are sent with, and where they end."""

import aiohttp
import pytest
from tests.support.api import SmallPlane, served

from noetl.api import pages
from noetl.api.pages import ALWAYS, ASKED_AGAIN, KEPT, PageFile, page_file

HTML = page_file("text/html; charset=utf-8", b"<!doctype html>", hashed=False)
SCRIPT = page_file("text/javascript; charset=utf-8", b"go()" * 100, hashed=True)


@pytest.fixture(params=["built", "not built"])
def built(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    there: dict[str, PageFile] = {"index.html": HTML, "assets/a.js": SCRIPT}
    found = there if request.param == "built" else {}
    monkeypatch.setattr(pages, "built_files", lambda: found)
    return bool(found)


async def test_the_pages_are_there_or_say_how_to_build_them(built: bool) -> None:
    async with served(SmallPlane()) as at, aiohttp.ClientSession() as session:
        for path in ("/", "/ui", "/ui/", "/ui/executions/e1?tab=events"):
            async with session.get(at.url + path) as answer:
                text = await answer.text()
                assert answer.status == (200 if built else 404), path
                assert all(answer.headers[name] == value for name, value in ALWAYS.items())
                assert text == "<!doctype html>" if built else "make ui" in text


async def test_a_file_is_kept_by_its_name_and_the_rest_is_asked_for_again() -> None:
    async with served(SmallPlane()) as at, aiohttp.ClientSession() as session:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(pages, "built_files", lambda: {"index.html": HTML, "assets/a.js": SCRIPT})
            async with session.get(f"{at.url}/ui/assets/a.js") as answer:
                assert (answer.status, await answer.read()) == (200, SCRIPT.body)
                assert answer.headers["content-encoding"] == "gzip"
                assert answer.headers["cache-control"] == KEPT
            async with session.get(f"{at.url}/ui/assets/b.js") as answer:
                assert answer.status == 404
            async with session.get(f"{at.url}/ui/") as answer:
                assert answer.headers["cache-control"] == ASKED_AGAIN
                tag = {"if-none-match": answer.headers["etag"]}
            async with session.get(f"{at.url}/ui/", headers=tag) as answer:
                assert (answer.status, await answer.read()) == (304, b"")
            async with session.head(f"{at.url}/ui/") as answer:
                assert (answer.status, await answer.read()) == (200, b"")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/healthz", 200),
        ("GET", "/api/nowhere", 404),
        ("GET", "/nowhere", 404),
        ("GET", "/uix", 404),
        ("POST", "/ui/", 404),
        ("POST", "/", 404),
    ],
)
async def test_the_api_is_not_touched(built: bool, method: str, path: str, status: int) -> None:
    async with (
        served(SmallPlane()) as at,
        aiohttp.ClientSession() as session,
        session.request(method, at.url + path) as answer,
    ):
        assert (answer.status, answer.content_type) == (status, "application/json"), built


def test_the_policy_lets_nothing_in_from_elsewhere() -> None:
    rules = dict(rule.strip().split(" ", 1) for rule in pages.POLICY.split(";"))
    assert rules["default-src"] == "'none'"
    assert {rules["script-src"], rules["style-src"], rules["connect-src"]} == {"'self'"}
    assert "unsafe" not in pages.POLICY
    assert "http" not in pages.POLICY
