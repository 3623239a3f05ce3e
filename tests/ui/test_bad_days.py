"""What goes wrong beside the page: the server restarts, streams break, a session ends, rows go."""

import re
import sqlite3
from contextlib import closing
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, Route, expect
from tests.system.servers import Node, node
from tests.ui.stories import DEPLOY, SHOP, start, status
from tests.ui.test_sign_in import sign_in, token

from noetl.adapters.sqlite.locks import FILE


def count_of(at: Node, execution_id: str) -> int:
    return int(at.there("status", execution_id, "--json").objects()[0]["seq"])


def test_a_restart_of_the_server_loses_and_doubles_nothing(
    tmp_path_factory: pytest.TempPathFactory, page: Page
) -> None:
    with node(tmp_path_factory.mktemp("restarted") / "home", "--open") as at:
        begun = start(at, DEPLOY, "ops/deploy")
        page.goto(f"{at.url}/ui/executions/{begun}?tab=events")
        expect(page.get_by_text("wait.started")).to_be_visible()
        assert at.here("server", "stop").code == 0
        expect(page.get_by_text("The live view is interrupted")).to_be_visible()
        at.start("--open", "--worker", "1", "--port", str(urlsplit(at.url).port))
        assert at.there("approve", begun, "--set", "ticket=OPS-1").code == 0
        expect(status(page)).to_have_text("Completed")
        expect(page.get_by_text("The live view is interrupted")).to_have_count(0)
        expect(page.get_by_text(re.compile(rf"^{count_of(at, begun)} events$"))).to_be_visible()


def test_a_stream_that_breaks_in_a_frame_goes_on_behind_the_last_whole_one(
    at: Node, page: Page
) -> None:
    begun = start(at, SHOP, "shop/orders")
    asked: list[int] = []

    def broken(route: Route) -> None:
        asked.append(int(parse_qs(urlsplit(route.request.url).query)["after"][0]))
        answer = route.fetch()
        whole = answer.body()
        cut = whole if len(asked) == 3 else whole[: len(whole) // 2]
        route.fulfill(response=answer, body=cut)

    page.goto(f"{at.url}/ui/executions/{begun}")
    expect(status(page)).to_have_text("Failed")
    page.route("**/stream?**", broken)
    page.goto(f"{at.url}/ui/executions/{begun}")
    steps = page.get_by_label("Step runs")
    expect(steps.locator("[data-status=failed]")).to_have_count(2)
    expect(steps).to_contain_text("12 / 12")
    page.unroute_all(behavior="wait")
    assert asked[0] == 0 < asked[-1]
    assert asked == sorted(asked)


def test_half_of_a_log_is_not_taken_for_all_of_it(at: Node, page: Page) -> None:
    begun = start(at, SHOP, "shop/orders")
    page.goto(f"{at.url}/ui/executions/{begun}")
    expect(status(page)).to_have_text("Failed")
    whole = False

    def slow(route: Route) -> None:
        if whole or "after=0&" in route.request.url:
            answer = route.fetch()
            body = answer.body()
            route.fulfill(response=answer, body=body if whole else body[: len(body) // 2])
        else:
            route.abort()

    page.route("**/stream?**", slow)
    page.goto(f"{at.url}/ui/executions/{begun}")
    expect(page.get_by_text("Reading the log:")).to_be_visible()
    whole = True
    expect(page.get_by_text("Reading the log:")).to_have_count(0)
    expect(page.get_by_label("Step runs").locator("[data-status=failed]")).to_have_count(2)
    page.unroute_all(behavior="wait")


def test_a_session_that_ends_asks_for_a_token_and_goes_on_where_it_was(
    tmp_path_factory: pytest.TempPathFactory, page: Page
) -> None:
    with node(tmp_path_factory.mktemp("ended") / "home", "--auth", workers=0) as at:
        first, first_id = token(at, "vera", "viewer")
        page.goto(f"{at.url}/ui/executions?status=failed")
        sign_in(page, first)
        expect(page.get_by_text("No execution matches")).to_be_visible()
        assert at.here("server", "token", "revoke", first_id).code == 0
        expect(page.get_by_role("button", name="Sign in")).to_be_visible()
        second, second_id = token(at, "vic", "viewer")
        sign_in(page, second)
        expect(page.get_by_text("No execution matches")).to_be_visible()
        expect(page).to_have_url(re.compile("status=failed"))
        expire(at, second_id)
        expect(page.get_by_role("button", name="Sign in")).to_be_visible()
        sign_in(page, second)
        expect(page.get_by_text("expired")).to_be_visible()


def expire(at: Node, token_id: str) -> None:
    """Its time passes, and that of its sessions, which are times in the home."""
    with closing(sqlite3.connect(at.home / FILE)) as home:
        these = "update api_token set expires_at = 1 where token_id like ?"
        assert home.execute(these, [f"{token_id}%"]).rowcount == 2
        home.commit()


def test_an_execution_that_was_removed_is_said_to_be(at: Node, page: Page) -> None:
    begun = start(at, SHOP.replace("shop/orders", "gone/orders"), "gone/orders")
    page.goto(f"{at.url}/ui/executions/{begun}")
    expect(status(page)).to_have_text("Failed")
    pruned = at.there("prune", "--older-than", "0s", "--path", "gone/*", "--yes")
    assert pruned.code == 0, pruned
    page.get_by_role("tab", name="Output").click()
    expect(page.get_by_text(f"no execution '{begun}'").first).to_be_visible()
    page.reload()
    expect(page.get_by_text("It may have been deleted by retention")).to_be_visible()
