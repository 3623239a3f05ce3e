"""Cursors lead on, and nothing but a cursor is taken for one."""

import base64

import pytest

from noetl.api.paging import cursor_of, page_of, place_in
from noetl.errors import ServerRefused


@pytest.mark.parametrize("place", ["a/b", "é:1", 0, 7, "", "x" * 500])
def test_a_cursor_leads_back(place: str | int) -> None:
    cursor = cursor_of(place)
    assert place_in(cursor, type(place)) == place
    assert "=" not in cursor
    assert cursor.isascii()


def test_no_cursor_is_the_beginning() -> None:
    assert place_in(None, str) is None


@pytest.mark.parametrize(
    "cursor", ["", "x", "?", "é", cursor_of(5), cursor_of(None), cursor_of("a\0"), "====", "W10"]
)
def test_what_is_no_cursor_is_refused(cursor: str) -> None:
    with pytest.raises(ServerRefused) as refused:
        place_in(cursor, str)
    assert (refused.value.code, refused.value.status) == ("cursor", 400)


@pytest.mark.parametrize("number", [2**63, -(2**63), 2**70, 10**1000])
def test_a_number_that_no_store_holds_is_refused(number: int) -> None:
    with pytest.raises(ServerRefused) as refused:
        place_in(cursor_of_text(str(number)), int)
    assert refused.value.status == 400


def cursor_of_text(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


@pytest.mark.parametrize(
    ("count", "shown", "last"), [(0, 0, None), (2, 2, None), (3, 3, None), (4, 3, 2)]
)
def test_a_page_is_cut_where_it_is_full(count: int, shown: int, last: int | None) -> None:
    rows, cursor = page_of(list(range(count)), 3, lambda row: row)
    assert (len(rows), place_in(cursor, int)) == (shown, last)
