"""What the register of orders promises."""

from typing import Any

from tests.contracts.homes import Homes

from noetl.ports.audit import AuditFilter, AuditRow
from noetl.ports.storage import Storage


async def wanted(home: Storage, limit: int = 50, **fields: Any) -> list[str]:
    return [row.about for row in await home.audit.page(AuditFilter(**fields), limit=limit)]


async def test_rows_are_there_for_everybody_and_the_latest_comes_first(homes: Homes) -> None:
    home, other = await homes.open(), await homes.open()
    rows = [
        AuditRow(at=100, who="ada", role="admin", what="token.add", about="a"),
        AuditRow(at=200, who="bob", what="cancel", about="b", result="refused", detail="no"),
        AuditRow(at=300, who="ada", role="admin", what="cancel", about="c"),
    ]
    for row in rows:
        await home.audit.note(row)
    assert list(await other.audit.page(AuditFilter())) == rows[::-1]
    assert await wanted(home, limit=2) == ["c", "b"]


async def test_rows_are_chosen_by_time_name_and_word(homes: Homes) -> None:
    home = await homes.open()
    for number, (who, what) in enumerate([("ada", "cancel"), ("bob", "cancel"), ("ada", "pause")]):
        await home.audit.note(AuditRow(at=number, who=who, what=what, about=str(number)))
    assert await wanted(home, who="ada") == ["2", "0"]
    assert await wanted(home, what="cancel") == ["1", "0"]
    assert await wanted(home, since=1) == ["2", "1"]
    assert await wanted(home, since=1, until=2) == ["1"]
    assert await wanted(home, who="ada", what="cancel", until=1) == ["0"]
    assert await wanted(home, who="eve") == []
