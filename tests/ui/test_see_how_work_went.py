"""Somebody sees how work goes: what waits, which worker was lost, what was printed and answered."""

import os
import re
import signal
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect
from tests.support.trial import until
from tests.system.servers import Node, node
from tests.ui.stories import DEPLOY, client, start, status

HELD = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: held, path: shop/held}
workload: {file: ""}
workflow:
  - step: pack
    tool:
      - hold:
          kind: shell
          command: "[ -e {{ workload.file }} ] || { touch {{ workload.file }}; sleep 600; }"
"""
ASKS = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: asks, path: shop/asks}
workload: {url: ""}
workflow:
  - step: ask
    tool:
      - well:
          kind: http
          url: "{{ workload.url }}/healthz"
      - wrong:
          kind: http
          url: "{{ workload.url }}/api/executions/01nothing"
"""
TOLD = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: told, path: shop/told}
workload: {file: ""}
workflow:
  - step: pack
    tool:
      - key: {kind: secrets, name: shop/told}
      - hold:
          kind: shell
          command: |
            echo packing with $KEY
            until [ -e {{ workload.file }} ]; do sleep 0.1; done
            exit 3
          env: {KEY: "{{ _prev.password }}"}
"""
NOBODY = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: nobody, path: shop/nobody}
executor: {spec: {pool: painters}}
workflow:
  - step: paint
    tool: [{brush: {kind: shell, command: "echo blue"}}]
"""


def bars(page: Page, step: str) -> Locator:
    """Those in the line of a step."""
    named = page.get_by_role("button", name=step, exact=True)
    return page.get_by_label("Step runs").locator(".line").filter(has=named).locator(".bar")


def test_a_wait_is_a_bar_of_its_own(at: Node, page: Page) -> None:
    begun = start(at, DEPLOY, "ops/deploy")
    page.goto(f"{at.url}/ui/executions/{begun}")
    expect(page.get_by_label("Why it waits")).to_contain_text("Ship release 4.2?")
    assert at.there("approve", begun, "--set", "ticket=OPS-7").code == 0
    expect(status(page)).to_have_text("Completed")
    waited = bars(page, "ask").and_(page.get_by_title(re.compile(r"^waited for \d")))
    expect(waited).to_have_attribute("data-tone", "wait")
    expect(page.get_by_label("What the bars mean")).to_contain_text("waited, or")


def test_a_lost_worker_is_marked_where_its_lease_ended(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, page: Page
) -> None:
    home = tmp_path_factory.mktemp("lost") / "home"
    with node(home, "--open", NOETL_LEASE_TTL="2") as at:
        began = tmp_path / "began"
        begun = start(at, HELD, "shop/held", file=str(began))
        page.goto(f"{at.url}/ui/executions/{begun}")
        until(began.exists)
        [worker] = at.here("worker", "status", "--json").objects()
        os.kill(worker["pid"], signal.SIGKILL)  # its server starts another
        expect(status(page)).to_have_text("Completed")
        expect(page.get_by_label("Step runs")).to_contain_text("1 lost lease")
        lost = bars(page, "pack").and_(page.get_by_title(re.compile("^The lease was lost")))
        expect(lost).to_have_attribute("data-tone", "lost")
        page.get_by_role("button", name="pack", exact=True).click()
        expect(page.get_by_label("Details")).to_contain_text("1 lease lost, the last at")


def test_the_answer_of_a_service_is_with_its_task(at: Node, page: Page) -> None:
    page.goto(f"{at.url}/ui/executions/{start(at, ASKS, 'shop/asks', url=at.url)}")
    expect(status(page)).to_have_text("Failed")
    page.get_by_role("button", name="well", exact=True).click()
    details = page.get_by_label("Details")
    answer = details.get_by_role("figure", name="Answer of the HTTP server")
    expect(answer).to_contain_text('"status": 200')
    page.get_by_role("button", name="wrong", exact=True).click()
    expect(details).to_contain_text("http: GET")
    given = details.get_by_role("figure", name="Inputs as the tool got them")
    expect(given).to_contain_text("/api/executions/01nothing")
    expect(answer).to_contain_text('"status": 404')
    expect(answer).to_contain_text("no execution '01nothing'")


@pytest.mark.rule("KEY-2")
def test_lines_are_seen_as_they_are_printed_and_without_secrets(
    at: Node, page: Page, tmp_path: Path
) -> None:
    with client(at) as asking:
        asking.put_credential("shop/told", "generic", {"password": "hunter2-secret"})
    goes_on = tmp_path / "goes-on"
    begun = start(at, TOLD, "shop/told", file=str(goes_on))
    page.goto(f"{at.url}/ui/executions/{begun}?tab=output")
    expect(page.get_by_label("Printed lines")).to_contain_text("packing with ***")
    expect(status(page)).to_have_text("Running")
    goes_on.touch()
    expect(status(page)).to_have_text("Failed")
    page.get_by_role("tab", name="Steps", exact=True).click()
    page.get_by_role("button", name="hold", exact=True).click()
    given = page.get_by_role("figure", name="Inputs as the tool got them")
    expect(given).to_contain_text("***")
    assert "hunter2-secret" not in page.content()


def test_what_no_worker_takes_is_queued_and_says_so(at: Node, page: Page) -> None:
    page.goto(f"{at.url}/ui/executions/{start(at, NOBODY, 'shop/nobody')}")
    expect(page.get_by_label("Why it waits")).to_contain_text("painters")
    expect(bars(page, "paint").first).to_have_attribute("data-tone", "calm")
