"""Somebody tries templates on what an execution has recorded, and looks into a large value."""

import json
import re

from playwright.sync_api import Page, expect
from tests.system.servers import Node
from tests.ui.stories import HOSTILE, start, status

ROWS = 5000
LARGE = f"""
apiVersion: noetl.io/v2
kind: Playbook
metadata: {{name: large, path: shop/large}}
executor: {{spec: {{policy: {{limits: {{max_payload_bytes: 65536}}}}}}}}
workload: {{words: {json.dumps(HOSTILE)}}}
workflow:
  - step: start
    tool:
      - many:
          kind: python
          code: "result = [{{'id': n, 'name': f'row {{n}}'}} for n in range({ROWS})]"
          spec: {{policy: {{rules: [{{else: {{then: {{do: continue,
            set_ctx: {{rows: "{{{{ outcome.result }}}}", total: 7}}}}}}}}]}}}}
"""


def test_templates_are_tried_on_a_past_execution(at: Node, page: Page) -> None:
    begun = start(at, LARGE, "shop/large")
    page.goto(f"{at.url}/ui/executions/{begun}")
    expect(status(page)).to_have_text("Completed")
    page.goto(f"{at.url}/ui/playbooks/shop/large")
    page.get_by_role("tab", name="Try a template").click()
    expect(page.get_by_label("On the values of")).to_have_value(begun)
    template, shown = (
        page.get_by_label("Template", exact=True),
        page.get_by_label("What it comes to"),
    )
    template.fill("{{ ctx.total * 6 }}")
    expect(shown).to_contain_text("42")
    template.fill("{{ ctx.rows | length }}")
    expect(shown).to_contain_text(str(ROWS))
    template.fill("{{ ctx.totla }}")
    expect(shown).to_contain_text("ctx.total")
    template.fill("{{ workload.words }}")
    expect(shown).to_contain_text(HOSTILE)
    expect(page).to_have_title("shop/large · NoETL")
    shared = page.url
    page.goto("about:blank")
    page.goto(shared)
    expect(template).to_have_value("{{ workload.words }}")


def test_a_large_value_is_looked_into_and_downloaded(at: Node, page: Page) -> None:
    begun = start(at, LARGE, "shop/large")
    page.goto(f"{at.url}/ui/executions/{begun}")
    expect(status(page)).to_have_text("Completed")
    page.get_by_role("button", name="many").click()
    details = page.get_by_label("Details")
    expect(details).to_contain_text("stored outside the log")
    details.get_by_role("button", name="Preview").click()
    preview = details.get_by_label("Preview of the value")
    expect(preview.get_by_role("row", name="3 3 row 3", exact=True)).to_be_visible()
    details.get_by_role("button", name="As JSON").click()
    expect(preview).to_contain_text('"name": "row 3"')
    with page.expect_download() as loading:
        details.get_by_role("link", name="Download").click()
    rows = json.loads(loading.value.path().read_bytes())
    assert len(rows) == ROWS
    details.get_by_role("link", name="Try a template on it").click()
    expect(page).to_have_url(re.compile("event="))
    page.get_by_label("Template", exact=True).fill("{{ outcome.result[7].name }}")
    expect(page.get_by_label("What it comes to")).to_contain_text("row 7")
