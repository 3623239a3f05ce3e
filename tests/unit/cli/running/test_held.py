"""What is told while somebody waits at a server: that no worker takes a part."""

from collections.abc import Sequence

import pytest
from tests.unit.cli.running.shown import RUN, scheduled

from noetl.cli.running.held import HeldBack
from noetl.messages import events as e
from noetl.server.waiting import WaitReason

NOBODY = WaitReason(step="work", kind="worker", words="no worker of that pool", pool="gpu")
BUSY = WaitReason(step="other", kind="task", words="at task 'get'")
OFFERED = e.TokenEnqueued(**RUN, pool="gpu")


class Heard:
    """A show that keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []

    def tell(self, execution_id: str, step: str, text: str) -> None:
        del execution_id
        self.told.append((step, text))


@pytest.mark.parametrize(
    ("patience", "event", "told"),
    [
        (0.0, OFFERED, [("work", "no worker of that pool")]),
        (0.0, scheduled(), []),
        (None, OFFERED, []),  # `noetl run` is its own worker
    ],
)
async def test_a_part_that_no_worker_takes_is_told_of(
    patience: float | None, event: e.Event, told: list[tuple[str, str]]
) -> None:
    async def ask(execution_id: str) -> Sequence[WaitReason]:
        del execution_id
        return [BUSY, NOBODY]

    heard = Heard()
    held = HeldBack(heard, ask, patience=patience)  # type: ignore[arg-type]
    held.take("x1", [event])
    for look in list(held._looks):
        await look
    assert heard.told == told
