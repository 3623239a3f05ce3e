"""Somebody runs the tests of a playbook: sees what failed, mends it, and keeps the file."""

from pathlib import Path

from playwright.sync_api import Locator, Page, expect
from tests.system.servers import Node
from tests.ui.stories import HOSTILE, register
from tests.ui.test_fix_playbook import PASTE, editor, state, write

WEATHER = """apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: weather, path: shop/weather}
workflow:
  - step: fetch
    tool:
      - get: {kind: http, url: "https://weather.invalid"}
    next: {arcs: [{step: cold, when: "{{ event.result.data.degrees < 10 }}"}, {step: warm}]}
  - step: cold
    tool: [{stay: {kind: noop}}]
  - step: warm
    tool: [{leave: {kind: noop}}]
"""
TESTS = f"""playbook: weather.yaml
tests:
  - name: "a warm day {HOSTILE}"
    outcomes: {{get: {{ok: {{status: 200, data: {{degrees: 25}}}}}}}}
    expect: {{steps: {{warm: 1}}}}
  - name: a cool day
    outcomes: {{get: {{ok: {{status: 200, data: {{degrees: 12}}}}}}}}
    expect: {{steps: {{cold: 1}}}}
"""


def written(page: Page) -> Locator:
    return page.get_by_label("Text of the tests")


def test_a_failed_test_is_mended_in_the_editor_and_its_file_is_kept(
    at: Node, page: Page, tmp_path: Path
) -> None:
    register(at, WEATHER)
    page.goto(f"{at.url}/ui/playbooks/shop/weather?tab=tests")
    expect(written(page)).to_contain_text('"fetch.get": { ok: null }')
    written(page).click()
    page.keyboard.press("Control+a")
    written(page).evaluate(PASTE, TESTS)
    page.get_by_role("button", name="Run tests").click()
    verdicts = page.get_by_label("Verdicts")
    expect(verdicts).to_contain_text("1 test passed, 1 failed")
    warm, cool = verdicts.get_by_role("article").all()
    expect(warm).to_contain_text(f"Passeda warm day {HOSTILE}")
    expect(cool).to_contain_text("Failed")
    expect(cool).to_contain_text("steps.cold: expected 1 runs, got 0")

    page.get_by_role("tab", name="Edit").click()
    expect(state(page)).to_contain_text("No findings")
    write(page, WEATHER.replace("< 10", "< 15"))
    expect(editor(page)).to_contain_text("< 15")
    page.get_by_role("tab", name="Tests").click()
    expect(page.get_by_label("Tests of")).to_have_value("true")
    page.get_by_role("button", name="Run tests").click()
    expect(verdicts).to_contain_text("2 tests passed")

    page.get_by_label("Tests of").select_option("version 1")
    page.get_by_role("button", name="Run tests").click()
    expect(verdicts).to_contain_text("1 test passed, 1 failed")
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save as file").click()
    assert saved.value.suggested_filename == "weather.test.yaml"
    (tmp_path / "weather.yaml").write_text(WEATHER.replace("< 10", "< 15"))
    saved.value.save_as(tmp_path / "weather.test.yaml")
    told = at.here("test", str(tmp_path / "weather.test.yaml"))
    assert (told.code, "2 tests passed" in told.out) == (0, True), told


def test_tests_that_cannot_be_read_say_where(at: Node, page: Page, tmp_path: Path) -> None:
    register(at, WEATHER)
    page.goto(f"{at.url}/ui/playbooks/shop/weather?tab=tests")
    file = tmp_path / "wrong.yaml"
    file.write_text(TESTS.replace("expect:", "expects:"))
    page.get_by_label("Open file").set_input_files(file)
    expect(written(page)).to_contain_text("expects:")
    page.get_by_role("button", name="Run tests").click()
    expect(page.get_by_text("did you mean 'expect'?")).to_be_visible()
