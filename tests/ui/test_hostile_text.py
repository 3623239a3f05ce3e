"""Whatever people and programs write is shown as text, however it is meant and however long."""

import json

from playwright.sync_api import Page, expect
from tests.system.servers import Node
from tests.ui.stories import HOSTILE, start, status

MILLION = 1_000_000
EVIL = f"""
apiVersion: noetl.io/v2
kind: Playbook
metadata:
  name: evil
  path: evil/text
  description: {json.dumps(HOSTILE)}
  labels: {{note: {json.dumps(HOSTILE)}}}
workload: {{said: {json.dumps(HOSTILE)}}}
workflow:
  - step: start
    desc: {json.dumps(HOSTILE)}
    tool:
      - shout:
          kind: python
          args: {{words: "{{{{ workload.said }}}}"}}
          code: |
            print(words)
            print(words * 20000)
            result = {{"said": words, "long": words * 20000, words: words}}
          spec: {{policy: {{rules: [{{else: {{then: {{do: continue,
            set_ctx: {{heard: "{{{{ outcome.result }}}}"}}}}}}}}]}}}}
    next: {{arcs: [{{step: ask}}]}}
  - step: ask
    tool:
      - ok:
          kind: wait
          approval: {{title: {json.dumps(HOSTILE)}, form: {{a: {{type: string}}}}}}
"""
TABS = ("steps", "graph", "events", "output", "values")


def test_hostile_and_huge_texts_are_shown_as_text(at: Node, page: Page) -> None:
    begun = start(at, EVIL, "evil/text")
    seen = [f"executions/{begun}?tab={tab}" for tab in TABS]
    seen += ["executions", "playbooks", "waiting", "audit", f"executions?q={HOSTILE}"]
    seen += [f"playbooks/evil/text?tab={tab}" for tab in ("graph", "runs", "text", "versions")]
    asked: list[str] = []
    page.on("dialog", lambda dialog: asked.append(dialog.message))
    page.goto(f"{at.url}/ui/executions/{begun}")
    expect(page.get_by_text("waits for a person")).to_be_visible()
    for address in seen:
        page.goto(f"{at.url}/ui/{address}")
        expect(page.locator("main h1")).to_be_visible()
        assert "broken" not in page.title().replace(HOSTILE, ""), address
        assert page.locator("main script").count() == 0
    expect(page.get_by_role("table")).to_be_visible()
    page.goto(f"{at.url}/ui/executions/{begun}?tab=values")
    expect(page.get_by_text("ctx: what its steps wrote")).to_be_visible()
    assert page.locator("main").evaluate("(one) => one.textContent.length") < MILLION
    page.goto(f"{at.url}/ui/executions/{begun}")
    page.get_by_label("a", exact=True).fill(HOSTILE)
    page.get_by_role("button", name="Approve", exact=True).click()
    expect(status(page)).to_have_text("Completed")
    assert asked == []
