"""What a browser loads: little at first, from the server alone, and nothing that a page brings."""

import re

from playwright.sync_api import Browser, Page, expect
from tests.system.servers import Node

from noetl.api.pages import built_files

MOST = 250_000
"""Bytes of JavaScript that the first page loads, compressed."""


def test_the_first_page_loads_little_and_from_nowhere_else(at: Node, page: Page) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{at.url}/")
    expect(page.get_by_role("heading", name="Executions", exact=True)).to_be_visible()
    assert all(url.startswith(at.url) for url in asked), asked
    files = built_files()
    scripts = {re.sub(r"^.*/ui/", "", url) for url in asked if url.endswith(".js")}
    size = sum(len(files[name].small) for name in scripts)
    assert 0 < size < MOST, (size, scripts)
    assert not any(re.match("assets/(Graph|Editor|setup|elk)", name) for name in scripts)


def test_no_script_of_a_page_runs_beside_those_of_the_server(at: Node, browser: Browser) -> None:
    # A window of its own: what the browser says of the refusal is no fault here.
    context = browser.new_context()
    page = context.new_page()
    answer = page.goto(f"{at.url}/")
    assert answer is not None
    policy = answer.headers["content-security-policy"]
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    blocked = page.evaluate(
        """() => new Promise((told) => {
          document.addEventListener("securitypolicyviolation", (broken) =>
            told(broken.effectiveDirective));
          const script = document.createElement("script");
          script.textContent = "document.title = 'broken'";
          document.head.append(script);
        })"""
    )
    assert blocked == "script-src-elem"
    assert page.title() != "broken"
    context.close()
