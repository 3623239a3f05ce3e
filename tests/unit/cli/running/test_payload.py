"""`--set` and `--payload`, and what is said where they are wrong."""

from pathlib import Path
from typing import Any

import click
import pytest

from noetl.cli.running.payload import payload_of, setting


@pytest.mark.parametrize(
    ("word", "keys", "value"),
    [
        ("a=1", ["a"], 1),
        ("a=1.5", ["a"], 1.5),
        ("a=true", ["a"], True),
        ("a=null", ["a"], None),
        ("a=text", ["a"], "text"),
        ("a=", ["a"], ""),
        ("a=b=c", ["a"], "b=c"),
        ('a="1"', ["a"], "1"),
        ("a=01", ["a"], "01"),
        ("a=[1, 2", ["a"], "[1, 2"),
        ("a=" + "[" * 100_000, ["a"], "[" * 100_000),
        ("a.b.c={}", ["a", "b", "c"], {}),
        ("a-b.ü=x", ["a-b", "ü"], "x"),
    ],
)
def test_a_setting(word: str, keys: list[str], value: Any) -> None:
    assert setting(word) == (keys, value)


@pytest.mark.parametrize("word", ["a", "=1", ".a=1", "a.=1", "a..b=1", ""])
def test_a_setting_without_a_name_is_refused(word: str) -> None:
    with pytest.raises(click.UsageError, match="--set expects NAME=VALUE, got"):
        setting(word)


@pytest.mark.parametrize(
    ("text", "sets", "payload"),
    [
        ("{}", [], {}),
        ('{"a": {"b": 1, "c": 2}}', ["a.b=3"], {"a": {"b": 3, "c": 2}}),
        ('{"a": 1}', ["a.b=2"], {"a": {"b": 2}}),
        ("a: on\nb: 0o17\n", ["c=1"], {"a": "on", "b": 15, "c": 1}),
        ('{"a": [1]}', ["a=[2]"], {"a": [2]}),
        ("{}", ["a=1", "a=2"], {"a": 2}),
    ],
)
def test_sets_go_over_the_file(tmp_path: Path, text: str, sets: list[str], payload: Any) -> None:
    (tmp_path / "payload").write_text(text)
    assert payload_of(str(tmp_path / "payload"), sets) == payload


def test_a_payload_may_be_larger_than_a_playbook(tmp_path: Path) -> None:
    (tmp_path / "payload").write_text('{"a": "%s"}' % ("x" * 3_000_000))
    assert len(payload_of(str(tmp_path / "payload"), [])["a"]) == 3_000_000


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[1]", "expects a mapping in .* got list"),
        ("", "expects a mapping in .* got nothing"),
        ("# only a remark\n", "line 1"),
        ("null", "got NoneType"),
        ("{a: 1, a: 2}", "'a'"),
        ("a: [", "line 2"),
        ("{" * 200, "line 1"),
    ],
)
def test_a_payload_that_is_no_mapping_is_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "payload").write_text(text)
    with pytest.raises(click.UsageError, match=said):
        payload_of(str(tmp_path / "payload"), [])
