"""What is beside a document: the files of its folder, the playbooks of the catalog (VAL-7)."""

import re
from collections.abc import Callable, Collection, Iterator
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, TypeGuard

from noetl.cli.source import PlaybookSource
from noetl.errors import NoetlError
from noetl.playbook.load import load
from noetl.playbook.neighbours import Neighbours
from noetl.tools.plugins import KnownKinds

if TYPE_CHECKING:
    from noetl.cli.contexts import Target
    from noetl.cli.target import Asked
    from noetl.playbook.declared import DeclaredInputs

MOST_FILES = 100
"""Files of a folder that are looked through for a playbook."""
MOST_PATHS = 2_000


def neighbours_of(source: PlaybookSource, target: "Target | None") -> Neighbours:
    """What is beside a file, and in the catalog of `target`; None: in no catalog."""

    @cache
    def playbook(path: str) -> "DeclaredInputs | None":
        texts = [*_beside(source, path), *_in_catalog(target, path)]
        found = (inputs_in(text) for text in texts)
        return next((inputs for inputs in found if inputs is not None), None)

    return Neighbours(file=source.beside, playbook=playbook, paths=_paths(target))


def at_home(source: PlaybookSource) -> Neighbours:
    """What is beside a file, and in the catalog of the home."""
    from noetl.cli.contexts import LOCAL, Target

    return neighbours_of(source, Target(None, None, LOCAL))


def inputs_in(text: str) -> "DeclaredInputs | None":
    """What the playbook of a text declares; None where it is none, or a broken one."""
    from noetl.playbook.declared import declared_in

    kinds = KnownKinds()
    loaded = load(text, kinds)
    return None if loaded.playbook is None else declared_in(loaded.playbook, kinds)


def _beside(source: PlaybookSource, path: str) -> Iterator[str]:
    """A file that the path leads to (TOOL-1), or one of the folder that calls itself so."""
    for name in (path, f"{path}.yaml", f"{path}/playbook.yaml"):
        text = source.beside(name)
        if text is not None:
            yield text
    if source.folder is not None:
        called = re.compile(rf"""path["']?\s*:\s*["']?{re.escape(path)}["'\s,}}]""")
        for file in islice(sorted(source.folder.glob("*.y*ml")), MOST_FILES):
            text = source.beside(file.name)
            if text is not None and called.search(text) and "kind: Trigger" not in text:
                yield text


def _in_catalog(target: "Target | None", path: str) -> Iterator[str]:
    if is_there(target):
        from noetl.cli.catalog import ask_catalog  # most documents name no other

        try:
            yield ask_catalog(target, lambda asked: asked.playbook(path)).text
        except NoetlError:
            return


def _paths(target: "Target | None") -> Callable[[], Collection[str]]:
    @cache
    def paths() -> Collection[str]:
        if not is_there(target):
            return ()
        from noetl.cli.catalog import ask_catalog

        try:
            return ask_catalog(target, _all_paths)
        except NoetlError:
            return ()

    return paths


async def _all_paths(asked: "Asked") -> Collection[str]:
    from noetl.cli.target import pages

    found: list[str] = []
    async for page in pages(asked.catalog):
        found += [entry.path for entry in page.entries]
        if len(found) >= MOST_PATHS:
            break
    return found


def is_there(target: "Target | None") -> "TypeGuard[Target]":
    """Whether there is a catalog to ask: a home that is not there is not made for a look."""
    if target is None or not target.local:
        return target is not None
    from noetl.adapters.sqlite.locks import FILE as DATABASE
    from noetl.settings import read_settings

    return (read_settings().home / DATABASE).exists()
