"""Patterns and parts of packages come when they are needed, and are then as they always were."""

import re
import subprocess
import sys
import threading

import pytest

from noetl.late import late, late_patterns

PROGRAM = """
import sys, threading
from noetl.late import spare
spare()
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
    code = (
        "import jinja2, sys, noetl.late; noetl.late.spare(); assert sys.modules['jinja2'] is jinja2"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_a_pattern_is_compiled_when_it_is_used() -> None:
    pattern = late("(a+)b", re.IGNORECASE)
    assert "match" not in vars(pattern)
    found = pattern.match("AAb")
    assert found is not None
    assert found[1] == "AA"
    assert "match" in vars(pattern)
    assert (pattern.sub("-", "xAB"), pattern.pattern) == ("x-", "(a+)b")
    assert (pattern.groups, pattern.flags & re.IGNORECASE) == (1, re.IGNORECASE)
    assert [pattern.fullmatch("abc"), *pattern.findall("ab aab")] == [None, "a", "aa"]


def test_a_pattern_has_no_more_than_a_pattern_has() -> None:
    with pytest.raises(AttributeError):
        assert late("a").nothing  # type: ignore[attr-defined]


YAML = """
import re, sys, threading
compile = re.compile
from noetl.late import spare
spare()
import yaml
assert re.compile is compile
assert type(yaml.reader.Reader.NON_PRINTABLE).__name__ == "LatePattern"
assert yaml.safe_load("a: [1, 2.5, true, 2020-01-01, '\\x41']")["a"][:3] == [1, 2.5, True]
assert list(yaml.SafeLoader("{a: 1}").get_data()) == ["a"]
try:
    yaml.SafeLoader("a: \\x00")
except yaml.reader.ReaderError:
    print("well")
"""


def test_yaml_reads_what_it_read() -> None:
    code = [sys.executable, "-c", YAML.replace("\\\\", "\\")]
    done = subprocess.run(code, capture_output=True, text=True, check=False, timeout=60)
    assert (done.stdout, done.stderr) == ("well\n", "")


def test_patterns_of_others_are_compiled_at_once() -> None:
    """Those of other threads, and of what a package imports from elsewhere."""
    made: list[object] = []
    with late_patterns(__name__.partition(".")[0]):
        made += [re.compile("b+"), re.compile(b"c")]
    with late_patterns("yaml"):
        other = threading.Thread(target=lambda: made.append(re.compile("a+")))
        other.start()
        other.join()
        made.append(re.compile("b+"))
    assert [isinstance(one, re.Pattern) for one in made] == [False, True, True, True]
    assert isinstance(re.compile("d"), re.Pattern)
