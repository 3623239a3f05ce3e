"""Jinja2 is imported part by part, and is whole for whoever asks for the whole of it."""

import subprocess
import sys

import pytest

PROGRAM = """
import sys, threading
from noetl.expression.template import compile_value
assert compile_value("{{ a.b | default(1) }} and {{ 2 > 1 }}")({}) == "1 and True"
assert "jinja2.environment" not in sys.modules, "too much is imported"
<then>
print("well")
"""


@pytest.mark.parametrize(
    "then",
    [
        "import jinja2; assert jinja2.Environment().from_string('{{ 1 }}').render() == '1'",
        "from jinja2 import Environment, nodes; assert nodes is sys.modules['jinja2.nodes']",
        "import jinja2.ext; assert jinja2.__version__",
        "import jinja2; assert not hasattr(jinja2, 'nothing'); assert hasattr(jinja2, 'Template')",
        "assert compile_value('{% if x %}{{ x }}{% endif %}')({'ctx': {'x': 3}}) == '3'",
        "assert compile_value(\"{{ '{:>3}'.format(x) }}\")({'ctx': {'x': 3}}) == '  3'",
        "assert compile_value(\"{{ [1, 2] | map('string') | list }}\")({}) == ['1', '2']",
        "assert compile_value('{{ a | tojson }}')({'ctx': {'a': {'b': 1}}}) == '{\"b\": 1}'",
        """
import jinja2
seen = []
threads = [threading.Thread(target=lambda: seen.append(jinja2.Template)) for _ in range(8)]
[one.start() for one in threads]
[one.join() for one in threads]
assert len(seen) == 8 and len(set(seen)) == 1
""",
    ],
)
def test_whatever_asks_for_more_gets_it(then: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.replace("<then>", then)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.stdout, done.stderr) == ("well\n", "")


def test_who_has_imported_it_before_is_not_disturbed() -> None:
    code = "import jinja2; whole = jinja2; import noetl.expression; assert whole is jinja2"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
