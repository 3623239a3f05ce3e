"""Labels of the playbooks that executions ran, read once for each text."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from noetl.errors import PlaybookRejected
from noetl.playbook.load import load_document
from noetl.ports.event_log import Playbooks
from noetl.ports.large import read_off_loop
from noetl.tools.plugins import KnownKinds

MOST_KNOWN: Final = 10_000


class PlaybookLabels:
    """`metadata.labels` by the digest of a text."""

    def __init__(self, playbooks: Playbooks) -> None:
        self._playbooks = playbooks
        self._known: dict[str, Mapping[str, str]] = {}

    async def of(self, digest: str) -> Mapping[str, str]:
        if digest not in self._known:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            kept = await self._playbooks.text(digest)
            self._known[digest] = {} if kept is None else await labels_in(kept[0])
        return self._known[digest]


async def labels_in(text: str) -> dict[str, str]:
    """`metadata.labels` of a document, as texts."""
    with suppress(PlaybookRejected):
        loaded = await read_off_loop(len(text), load_document, text, KnownKinds())
        document = loaded.playbook or loaded.trigger
        labels = {} if document is None else document.metadata.get("labels")
        if isinstance(labels, dict):
            return {str(name): str(value) for name, value in labels.items()}
    return {}
