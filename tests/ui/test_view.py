"""Somebody looks at an execution of their home in the browser, without a server to set up."""

import os
import signal
import subprocess
import sys

import pytest
from playwright.sync_api import Page, expect
from tests.system.program import noetl
from tests.system.servers import NEUTRAL
from tests.ui.stories import HOSTILE, SHOP, status


def test_an_execution_of_the_home_is_shown_read_only(
    tmp_path_factory: pytest.TempPathFactory, page: Page
) -> None:
    tmp_path = tmp_path_factory.mktemp("viewed")
    home = {**NEUTRAL, "NOETL_HOME": str(tmp_path / "home"), "DISPLAY": "", "WAYLAND_DISPLAY": ""}
    playbook = tmp_path / "shop.yaml"
    playbook.write_text(SHOP, "utf-8")
    assert noetl("run", playbook, stdin=b"", **home).code == 1
    command = [sys.executable, "-m", "noetl", "view", "last"]
    viewing = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, **home}
    )
    try:
        assert viewing.stdout is not None
        address = viewing.stdout.readline().strip()
        page.goto(address)
        expect(status(page)).to_have_text("Failed")
        expect(page.get_by_label("Why it failed")).to_contain_text(HOSTILE)
        assert "ticket" not in page.url
        expect(page.get_by_role("button", name="Restart what failed")).to_have_count(0)
        page.reload()
        expect(status(page)).to_have_text("Failed")
        refused = page.request.post(page.url.replace("/ui/", "/api/") + "/cancel", data={})
        assert refused.status in (401, 403)
        page.context.clear_cookies()
        page.goto("about:blank")
        page.goto(address)
        expect(page.get_by_role("button", name="Sign in")).to_be_visible()
    finally:
        viewing.send_signal(signal.SIGINT)
        viewing.communicate(timeout=600)
    assert viewing.returncode == 0
    assert not (tmp_path / "home" / "token").exists(), "a guest leaves nothing behind"
