"""A row of the log that cannot be read is called damage, and named."""

import pytest
from tests.contracts.homes import decision, row

from noetl.adapters.memory.storage import MemoryStorage
from noetl.errors import LogDamaged
from noetl.messages.codec import recorded_mappings
from noetl.ports.event_log import LogRow
from noetl.server.replay import first_event, thawed_or_new
from noetl.server.trail import trail_of

BROKEN = {
    "cut off": b'[{"name":"step.star',
    "not UTF-8": b'[{"name":"step.started","step":"\xff\xfe"}]',
    "an unknown name": b'[{"name":"step.danced"}]',
    "not a list": b'{"name":"step.started"}',
    "no events": b"[1, 2]",
    "bytes of something else": bytes(range(256)),
    "a reference without its place": b'[{"name":"step.done","result":{"$ref":5}}]',
}


@pytest.mark.parametrize("broken", BROKEN)
async def test_damage_is_named_with_its_place(broken: str) -> None:
    home = MemoryStorage()
    for expected in (0, 3):
        await home.log.append(decision("a", expected, expected + 3, row=row("a")))
    home.tables.decisions["a"][:] = [LogRow(4, 6, 0, BROKEN[broken])]
    with pytest.raises(LogDamaged, match=r"log of execution a is damaged at seq 4: .* a backup"):
        await trail_of(home.log, "a")
    with pytest.raises(LogDamaged, match="execution a"):
        await first_event(home.log, "a")


@pytest.mark.parametrize("broken", ["cut off", "not UTF-8", "not a list", "no events"])
def test_who_only_shows_events_says_the_same(broken: str) -> None:
    with pytest.raises(LogDamaged, match="damaged at seq 7"):
        recorded_mappings("a", 7, BROKEN[broken])


@pytest.mark.rule("EVT-5")
@pytest.mark.parametrize("body", [b"", b"{}", b"\xff", b'{"state": {}, "views": []}'])
def test_a_snapshot_that_cannot_be_read_is_no_loss(body: bytes) -> None:
    assert thawed_or_new(body, "a").seq == 0
