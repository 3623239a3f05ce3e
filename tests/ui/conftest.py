"""A browser and a server with a worker, for stories of people in front of the web UI."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright
from tests.system.servers import Node, node

from noetl.api.pages import built_files

CHROMIUM = shutil.which("chromium-headless-shell") or shutil.which("chromium") or "chromium"
"""The one without windows takes less than half as long to open a page."""
ALONE = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
)
"""As root, and without asking anybody outside for anything."""
PATIENCE = 120_000
"""Milliseconds: a busy machine must not fail a story."""
REFUSALS = "Failed to load resource"
"""What the browser says of an answer that is an error, which stories look for themselves."""


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """For these stories alone: while it is open, this thread has a loop that runs."""
    assert built_files(), "there is no web UI to test: run `make ui`"
    assert Path(CHROMIUM).exists(), "there is no browser: run `make tools`"
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=list(ALONE))
        yield started
        started.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A new window; whatever its console complains about fails the story."""
    wrong: list[str] = []

    def heard(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not message.text.startswith(REFUSALS):
            wrong.append(message.text)

    context = browser.new_context(viewport={"width": 1440, "height": 900}, locale="en-GB")
    opened = context.new_page()
    opened.set_default_timeout(PATIENCE)
    opened.on("console", heard)
    opened.on("pageerror", lambda error: wrong.append(str(error)))
    yield opened
    context.close()
    assert wrong == []


@pytest.fixture(scope="package")
def at(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A server without auth and one worker; other stories have left things there."""
    with node(tmp_path_factory.mktemp("ui") / "home", "--open") as made:
        yield made


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """Another, for a file whose stories count all that is there."""
    with node(tmp_path_factory.mktemp("alone") / "home", "--open") as made:
        yield made


@pytest.fixture(scope="package")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """One that asks who calls."""
    with node(tmp_path_factory.mktemp("guarded") / "home", "--auth") as made:
        yield made
