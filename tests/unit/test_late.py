"""Patterns come when they are needed, and are then as they always were."""

import re
import subprocess
import sys
import threading

import pytest

from noetl.late import LatePattern, late, late_patterns


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


def test_a_pattern_is_one_for_whoever_asks() -> None:
    pattern = late("a+")
    assert isinstance(pattern, re.Pattern)
    assert re.sub(pattern, "-", "caat") == "c-t"
    assert re.compile(pattern) is pattern


def test_a_pattern_of_bytes_is_one_too() -> None:
    with late_patterns({__name__.partition(".")[0]}):
        pattern = re.compile(b"(a+)b")
    assert "sub" not in vars(pattern)
    assert pattern.sub(b"-", b"xaab") == b"x-"


def test_a_pattern_has_no_more_than_a_pattern_has() -> None:
    with pytest.raises(AttributeError):
        assert late("a").nothing  # type: ignore[attr-defined]


YAML = """
import re, sys, threading
compile = re.compile
from noetl.imports import sparing
with sparing():
    import yaml, yaml.reader
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
    done = subprocess.run(code, capture_output=True, text=True, check=False, timeout=600)
    assert (done.stdout, done.stderr) == ("well\n", "")


def test_patterns_of_others_are_compiled_at_once() -> None:
    """Those of other threads, and of what a package imports from elsewhere."""
    made: list[object] = []
    with late_patterns({__name__.partition(".")[0]}):
        made += [re.compile("b+"), re.compile(b"c")]
    with late_patterns({"yaml"}):
        other = threading.Thread(target=lambda: made.append(re.compile("a+")))
        other.start()
        other.join()
        made.append(re.compile("b+"))
    assert [type(one) is LatePattern for one in made] == [True, True, False, False]
    assert type(re.compile("d")) is re.Pattern
