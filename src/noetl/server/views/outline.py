"""A playbook as it is drawn and asked for in forms: its steps, its arcs, its workload."""

from typing import Any

import msgspec

from noetl.errors import PlaybookNotFound, PlaybookRejected
from noetl.playbook.load import load_kept
from noetl.playbook.model import Playbook
from noetl.ports.large import DRAFTS
from noetl.ports.storage import Storage
from noetl.server.views.drawing import Box, Edge, draw
from noetl.tools.plugins import KnownKinds


class Outline(msgspec.Struct, frozen=True, kw_only=True):
    """Steps as boxes, arcs as links between them, in the order of the document."""

    workload: dict[str, Any]
    """What an execution is given where the request says nothing else."""
    boxes: list[Box]
    links: list[Edge]
    """Of one box in the order of its arcs: `next.evaluated` counts them from 0."""


async def outline_of(storage: Storage, digest: str) -> Outline:
    """Of the text with this digest."""
    kept = await storage.playbooks.text(digest)
    if kept is None:
        raise PlaybookNotFound("the text of this playbook is not kept any more")
    try:
        return await DRAFTS.read(len(kept[0]), outlined_text, kept[0])
    except PlaybookRejected:  # what was registered is a playbook or a trigger
        raise PlaybookNotFound("a trigger has no steps to draw") from None


def outlined_text(text: str) -> Outline:
    return outlined(load_kept(text, KnownKinds()))


def outlined(playbook: Playbook) -> Outline:
    drawing = draw(playbook)
    return Outline(workload=playbook.workload, boxes=list(drawing.boxes), links=list(drawing.links))


def drawn(playbook: Playbook) -> Outline | None:
    """Of a text that may have faults; None where an arc leads nowhere, or no step is there."""
    names = {step.name for step in playbook.steps}
    routers = [step.router for step in playbook.steps if step.router]
    known = all(arc.step in names for router in routers for arc in router.arcs)
    return outlined(playbook) if names and known else None
