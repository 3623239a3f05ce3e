"""Half a secret is not recognized: what is cut is masked before."""

import pytest

from noetl.expression.failure import shortened
from noetl.kinds.awaited import moment
from noetl.masking import KNOWN, MASK
from noetl.messages.clipping import beginning, ending, without_end

pytestmark = pytest.mark.rule("KEY-2")

SECRET = "qwjkzmxptrvnldshfgbcyaeuio"


@pytest.fixture(autouse=True)
def known() -> None:
    KNOWN.add(SECRET)


@pytest.mark.parametrize("most", range(1, 40))
def test_no_part_of_a_secret_is_shown_at_a_cut(most: int) -> None:
    text = f"a {SECRET} b"
    first = beginning(text, most)
    assert first == f"a {MASK} b"[:most] or (first == text and most >= len(text))
    assert ending(text, most, whole=True) == f"a {MASK} b"[-most:]


@pytest.mark.parametrize("cut", range(1, len(SECRET)))
def test_nor_where_something_was_cut_before(cut: int) -> None:
    half = SECRET[cut:]
    assert half not in ending(f"{half} and more", 400, whole=False)
    assert SECRET[:cut] not in without_end(f"more, and {SECRET[:cut]}")


def test_without_secrets_nothing_is_lost() -> None:
    KNOWN.clear()
    assert (without_end("abc"), ending("abc", 9, whole=False)) == ("abc", "abc")


def test_messages_of_templates_and_waits_are_cut_so() -> None:
    for most in range(1990, 2000):
        assert "qwj" not in shortened("x" * most + SECRET)
    with pytest.raises(ValueError, match="is not a time") as refused:
        moment("x" * 70 + SECRET)
    assert "qwj" not in str(refused.value)
