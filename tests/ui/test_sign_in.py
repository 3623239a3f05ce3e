"""People sign in by role: a viewer looks, an operator acts, and a revoked token ends it all."""

from playwright.sync_api import Page, expect
from tests.system.servers import Node
from tests.ui.stories import DEPLOY, start, status


def token(at: Node, name: str, role: str) -> tuple[str, str]:
    [made] = at.here("server", "token", "add", name, "--role", role, "--json").objects()
    return str(made["token"]), str(made["token_id"])


def sign_in(page: Page, text: str) -> None:
    page.get_by_label("Token").fill(text)
    page.get_by_role("button", name="Sign in").click()


def test_each_role_sees_what_it_may_do(guarded: Node, page: Page) -> None:
    begun = start(guarded, DEPLOY, "ops/deploy")
    viewer, _ = token(guarded, "wanda", "viewer")
    operator, operator_id = token(guarded, "otto", "operator")

    page.goto(f"{guarded.url}/ui/executions/{begun}")
    sign_in(page, "noetl_wrong")
    expect(page.get_by_text("the token is not known")).to_be_visible()
    sign_in(page, viewer)
    expect(status(page)).to_have_text("Running")
    expect(page.get_by_role("button", name="Cancel")).to_have_count(0)
    expect(page.get_by_text("To answer, you need the role approver")).to_be_visible()
    [cookie] = page.context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"], cookie["path"]) == (True, "Strict", "/api")
    assert cookie["value"] != viewer

    page.get_by_role("button", name="Sign out").click()
    sign_in(page, operator)
    page.get_by_role("button", name="Cancel", exact=True).click()
    page.get_by_role("button", name="Cancel it").click()
    expect(status(page)).to_have_text("Cancelled")

    assert guarded.here("server", "token", "revoke", operator_id).code == 0
    page.goto(f"{guarded.url}/ui/executions")
    expect(page.get_by_role("button", name="Sign in")).to_be_visible()
