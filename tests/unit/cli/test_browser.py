"""A page is opened in the browser, and nobody else on the machine can read how."""

import webbrowser
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from noetl.api.tickets import address_with, new_ticket
from noetl.cli.browser import open_page

URL = "http://127.0.0.1:8765"


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """What browsers were told on their command lines."""
    found: list[str] = []
    monkeypatch.setenv("DISPLAY", ":1")
    monkeypatch.setenv("NOETL_HOME", str(tmp_path / "home"))

    def opened(address: str) -> bool:
        found.append(address)
        return True

    monkeypatch.setattr(webbrowser, "open", opened)
    return found


def test_a_ticket_is_on_no_command_line(told: list[str]) -> None:
    """Everybody can read those, and whoever is quicker would be signed in as the owner."""
    address = address_with(URL, "executions/e1", new_ticket("secret"))
    assert open_page(address)
    [shown] = told
    assert address.partition("#")[2] not in shown
    page = Path(urlsplit(shown).path)
    assert address in page.read_text()
    assert [one.stat().st_mode & 0o077 for one in (page, page.parent)] == [0, 0]


def test_an_address_without_one_is_told_as_it_is(told: list[str]) -> None:
    assert open_page(f"{URL}/ui/")
    assert told == [f"{URL}/ui/"]


def test_without_a_screen_there_is_no_browser(
    told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    assert not open_page(f"{URL}/ui/")
    assert told == []
