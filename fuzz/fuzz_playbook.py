"""
The target: whatever bytes come, loading them and evaluating their templates ends in words.

A playbook may be rejected and a template may fail; nothing else may be raised.
"""

from typing import Any

from fuzz.fuzz_signing import check_signed
from noetl.cli.findings import render
from noetl.cli.graph.mermaid import mermaid
from noetl.cli.graph.svg import svg
from noetl.cli.source import PlaybookSource
from noetl.cli.terminal import Paint
from noetl.errors import TemplateError
from noetl.expression.syntax import is_template
from noetl.expression.template import compile_guard, compile_text
from noetl.playbook.load import load
from noetl.server.views.drawing import draw

SCOPE: dict[str, Any] = {
    "workload": {"items": [1, 2.5, "three", None], "name": "x", "hour": 9},
    "ctx": {"rows": 3, "deep": {"list": [[1], [2]]}},
    "iter": {"index": 0},
    "args": {"greeting": "hello"},
    "event": {"name": "step.done", "step": "start", "result": None},
    "execution_id": "1",
}


def check_playbook(content: bytes) -> None:
    """Load, show the findings, and draw what is valid."""
    loaded = load(content)
    if not loaded.playbook and not loaded.findings:
        raise AssertionError("rejected without a finding")
    for finding in loaded.findings:
        if finding.line < 1 or finding.column < 1 or not finding.message:
            raise AssertionError(f"a finding without a place: {finding}")
    for text in render(PlaybookSource("fuzz", content), loaded.findings, Paint(False), 80):
        if any(ord(char) < 32 and char != "\n" for char in text):
            raise AssertionError("a control character reaches the terminal")
    if loaded.playbook:
        drawing = draw(loaded.playbook)
        mermaid(drawing)
        svg(drawing)


def check_template(content: bytes) -> None:
    """Compile and evaluate, strictly and as a guard."""
    text = content.decode("utf-8", errors="replace")
    for compiled in (compile_text, compile_guard):
        try:
            compiled(text if is_template(text) else f"{{{{ {text} }}}}")(dict(SCOPE))
        except TemplateError as failed:
            if not str(failed):
                raise AssertionError("a template failed without a word") from None


def check_input(content: bytes) -> None:
    """The first byte chooses, so that one corpus serves all."""
    if content[:1] == b"\x01":
        check_template(content[1:])
    elif content[:1] == b"\x02":
        check_signed(content[1:])
    else:
        check_playbook(content)
