"""An admin makes a token, keeps a credential, sets a limit, and reads who ordered what."""

from playwright.sync_api import Page, expect
from tests.system.servers import Node
from tests.ui.test_sign_in import sign_in, token


def test_an_admin_keeps_tokens_credentials_and_limits(guarded: Node, page: Page) -> None:
    admin, _ = token(guarded, "ada", "admin")
    page.goto(f"{guarded.url}/ui/tokens")
    sign_in(page, admin)
    page.get_by_role("button", name="Make a token").click()
    form = page.get_by_role("dialog")
    form.get_by_label("Name").fill("vera")
    form.get_by_label("Role").select_option("viewer")
    form.get_by_role("button", name="Make it").click()
    shown = page.get_by_label("New token")
    expect(shown).to_contain_text("noetl_")
    viewer = shown.locator("code").inner_text()
    page.get_by_role("button", name="Done").click()

    page.get_by_role("link", name="Credentials").click()
    page.get_by_role("button", name="Add", exact=True).click()
    form.get_by_label("Name").fill("shop/db")
    form.get_by_label("Kind").fill("generic")
    form.get_by_label("Field 1").fill("password")
    form.get_by_label("Value 1").fill("hunter2-secret")
    form.get_by_role("button", name="Add", exact=True).click()
    expect(page.get_by_role("cell", name="shop/db")).to_be_visible()
    assert "hunter2-secret" not in page.content()

    page.get_by_role("link", name="Runtime").click()
    page.get_by_role("button", name="Set limit of default").click()
    form.get_by_label("At once").fill("3")
    form.get_by_role("button", name="Set").click()
    expect(page.get_by_text("At most 3 at once")).to_be_visible()
    expect(page.get_by_role("img", name="Requests")).to_be_visible()

    page.get_by_role("link", name="Audit").click()
    for words in ("credential.put", "token.add", "pool.set"):
        expect(page.get_by_role("cell", name=words).first).to_be_visible()
    page.get_by_label("What").select_option("pool.set")
    expect(page.get_by_role("cell", name="token.add")).to_have_count(0)

    page.get_by_role("link", name="Tokens").click()
    # By the whole cell: the text of a row runs its cells together ("never" and an id of "a…").
    hers = page.get_by_role("row").filter(has=page.get_by_role("cell", name="vera", exact=True))
    hers.get_by_role("button", name="Revoke").click()
    page.get_by_role("button", name="Revoke it").click()
    expect(hers).to_contain_text("Revoked")
    page.get_by_role("button", name="Sign out").click()
    sign_in(page, viewer)
    expect(page.get_by_text("the token is not known, has expired or was revoked")).to_be_visible()


def test_a_viewer_sees_no_room_that_is_not_for_viewers(guarded: Node, page: Page) -> None:
    viewer, _ = token(guarded, "vic", "viewer")
    page.goto(f"{guarded.url}/ui/")
    sign_in(page, viewer)
    expect(page.get_by_role("link", name="Runtime")).to_be_visible()
    for name in ("Credentials", "Tokens", "Audit"):
        expect(page.get_by_role("link", name=name)).to_have_count(0)
    page.goto(f"{guarded.url}/ui/audit")
    expect(page.get_by_text("this needs admin")).to_be_visible()
