"""What is kept of texts that anybody may send: never more than there is room for."""

from collections.abc import Callable
from threading import Thread

import pytest

from noetl.expression import syntax, writer
from noetl.expression.remembered import Remembered, remembered
from noetl.playbook.dialects import code, guards, names
from noetl.playbook.dialects.migrate import migrate


def test_a_thing_is_made_once_while_there_is_room() -> None:
    made: list[str] = []

    @remembered(20)
    def shout(text: str) -> str:
        made.append(text)
        return text.upper()

    asked = ("abcd", "efgh", "abcd", "ijkl", "abcd", "mnop", "abcd", "efgh")
    assert [shout(text) for text in asked] == [text.upper() for text in asked]
    assert made == ["abcd", "efgh", "ijkl", "mnop", "efgh"]  # the one not asked for had to go
    assert shout("x" * 11) == "X" * 11
    assert 0 < shout.size <= 20


def test_a_fault_is_not_kept() -> None:
    asked: list[str] = []

    @remembered(10)
    def refuse(text: str) -> str:
        asked.append(text)
        raise ValueError(text)

    for _ in range(2):
        with pytest.raises(ValueError, match="ab"):
            refuse("ab")
    assert (asked, refuse.size) == (["ab", "ab"], 0)


def test_threads_that_ask_at_once_keep_the_count() -> None:
    kept = remembered(50)(str.upper)

    def ask() -> None:
        for n in range(2000):
            assert kept(f"text-{n % 17}") == f"TEXT-{n % 17}"

    threads = [Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 0 < kept.size <= 50 + 4 * len("text-16")  # each may count one wrong


PLAYBOOK = """apiVersion: noetl.io/v1
kind: Playbook
metadata: {{name: t, path: t}}
workflow:
- step: start
  tool:
  - one: {{kind: python, code: "x = [{many}]", args: {{x: "{{{{ [{many}] }}}}"}}}}
"""


@pytest.mark.parametrize("keeping", [syntax.parse, writer.compiled], ids=["trees", "code"])
def test_drafts_take_no_more_than_the_room(keeping: Remembered[object]) -> None:
    """They are checked on the server, by whoever can look at it."""
    form: Callable[[int, str], str] = {
        syntax.parse: lambda n, many: f"{{{{ [{n}, {many}] }}}}",
        writer.compiled: lambda n, many: f"x = {n}, '{many}'",
    }[keeping]
    many = ", ".join(["1"] * (keeping.room // 30))
    for n in range(15):
        keeping(form(n, many))
    assert 0 < keeping.size <= keeping.room
    keeping.cache_clear()


def test_a_translation_leaves_nothing_behind() -> None:
    assert migrate(PLAYBOOK.format(many="1, " * 50)).findings
    kept = (names.tokens_of, names.reads_of, guards.settled, code.read_code)
    assert [one.cache_info().currsize for one in kept] == [0, 0, 0, 0]
