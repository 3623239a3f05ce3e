"""Orders that a command carries out in a home: who gave them is noted there."""

import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from noetl.node.control_plane import ControlPlane
from noetl.node.local import os_user
from noetl.ports.audit import AuditRow
from noetl.ports.storage import Storage

T = TypeVar("T")
Opened = TypeVar("Opened", bound=ControlPlane | Storage)


def noting(
    what: str, about: str, work: Callable[[Opened], Awaitable[T]]
) -> Callable[[Opened], Awaitable[T]]:
    """The work, and once it is done a row in the register of orders."""

    async def done(opened: Opened) -> T:
        answer = await work(opened)
        if answer is not False:  # there was nothing to do it to
            await note(opened, what, about)
        return answer

    return done


async def note(opened: ControlPlane | Storage, what: str, about: str) -> None:
    storage = opened.storage if isinstance(opened, ControlPlane) else opened
    at = int(time.time() * 1000)
    await storage.audit.note(AuditRow(at=at, who=os_user(), what=what, about=about))
