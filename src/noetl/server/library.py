"""Which plan does an execution follow? Texts are kept by digest, plans made once (T15, TPL-4)."""

import posixpath
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from noetl.control.execution import Execution
from noetl.errors import PlaybookNotFound, UnreadableFile
from noetl.messages.events import ExecutionRequested
from noetl.playbook.finding import Finding
from noetl.playbook.load import load_kept, load_valid
from noetl.playbook.plan import Plan, digest_of, make_plan
from noetl.playbook.yaml_checks import MAX_BYTES
from noetl.ports.large import read_off_loop
from noetl.ports.plans import Plans
from noetl.server.finding import find_entry, near_path
from noetl.server.replay import Load, first_event, replay
from noetl.tools.bounds import Bounds
from noetl.tools.plugins import KnownKinds

if TYPE_CHECKING:
    from noetl.playbook.declared import DeclaredInputs
    from noetl.ports.storage import Storage

MOST_DECLARED = 1_000
"""Playbooks whose declared inputs are remembered."""


class Found(msgspec.Struct, frozen=True):
    """A text that a path led to."""

    text: str
    folder: str | None
    version: str | None
    """In the catalog; None for a file."""


class Library:
    """Texts, plans, and the states that they lead to."""

    def __init__(
        self, storage: "Storage", bounds: Bounds | None = None, load: Load | None = None
    ) -> None:
        self._storage = storage
        self._load = load
        self._bounds = bounds or Bounds()
        self._plans = Plans(plan_from)
        self._declared: dict[str, DeclaredInputs] = {}

    async def plan_of(self, text: str, folder: str | None, made: Plan | None = None) -> Plan:
        """
        The checked plan of a text, kept so that the run can always go back to it.

        `made` is the plan of this text where the caller has it already.
        """
        digest = digest_of(text)
        plan = self._plans.find(digest)
        if plan is None:
            plan = await self._plans.made(text, plan_of_new) if made is None else made
            await self._storage.playbooks.keep(digest, plan.path, text, folder)
            self._plans.keep(digest, text, plan)
        return plan

    async def plan_by(self, digest: str) -> Plan:
        """The plan of a text that was kept before."""

        async def text() -> str:
            return (await self.text_of(digest))[0]

        return await self._plans.by(digest, text)

    async def inputs_by(self, digest: str) -> "DeclaredInputs":
        """What the playbook of a text that was kept before declares of its inputs."""
        found = self._declared.get(digest)
        if found is None:
            text, _ = await self.text_of(digest)
            found = await read_off_loop(len(text), inputs_from, text)
            if len(self._declared) >= MOST_DECLARED:
                self._declared.clear()
            self._declared[digest] = found
        return found

    async def warnings(self, digest: str, payload: Mapping[str, Any]) -> list[Finding]:
        """VAL-7: what of a payload does not fit the playbook."""
        if not payload:
            return []
        from noetl.playbook.declared import warnings_of

        return warnings_of(await self.inputs_by(digest), payload)

    async def text_of(self, digest: str) -> tuple[str, str | None]:
        found = await self._storage.playbooks.text(digest)
        if found is None:
            raise PlaybookNotFound(f"no playbook with digest {digest[:12]}… in this home")
        return found

    async def load(self, execution_id: str) -> tuple[Execution, Plan, str | None]:
        """The state of an execution, the plan that it began with, and its folder."""
        requested = await self.origin(execution_id)
        plan = await self.plan_by(requested.digest)  # without writing: others only look
        execution, _ = await replay(self._storage.log, execution_id, plan, self._load)
        return execution, plan, requested.folder

    async def origin(self, execution_id: str) -> ExecutionRequested:
        """What began an execution: its playbook, payload and folder."""
        requested = await first_event(self._storage.log, execution_id)
        assert isinstance(requested, ExecutionRequested), "a log begins with its request"
        return requested

    async def child(self, path: str, version: str | None, parent: str, folder: str | None) -> Found:
        """
        TOOL-1: the catalog's, or a file relative to the parent's.

        A parent that has no folder came from the catalog, and so does its child: no file of the
        server's own is read. `ship.yaml` beside `orders/pack` is `orders/ship` there.
        """
        names = [path] if folder is not None else list(dict.fromkeys((path, beside(parent, path))))
        for name in names:
            entry = await find_entry(self._storage.catalog, name, version)
            if entry is not None:
                text, _ = await self.text_of(entry.digest)
                return Found(text, None, str(entry.version))
        tried = " or ".join(f"'{name}'" for name in names)
        if version is not None:
            raise PlaybookNotFound(f"the catalog has no version {version} of {tried}")
        if folder is None:
            near = await near_path(self._storage.catalog, path)
            remedy = near or "; register it with `noetl register FILE`"
            raise PlaybookNotFound(f"the catalog has no playbook {tried}{remedy}")
        from noetl.tools.paths import open_file
        from noetl.tools.refusal import Refusal

        file = child_file(path, folder, self._bounds)
        try:
            with open_file(file) as opened:
                return Found(opened.read(MAX_BYTES + 1).decode(), str(file.parent), None)
        except (OSError, UnicodeDecodeError, Refusal) as fault:
            raise UnreadableFile(f"playbook '{path}' cannot be read: {fault}") from None


def plan_from(text: str) -> Plan:
    """The plan of a text that was accepted before; raises PlaybookRejected."""
    kinds = KnownKinds()
    return make_plan(load_kept(text, kinds), text, kinds)


def inputs_from(text: str) -> "DeclaredInputs":
    from noetl.playbook.declared import declared_in

    kinds = KnownKinds()
    return declared_in(load_kept(text, kinds), kinds)


def plan_of_new(text: str) -> Plan:
    """The plan of a text that passes every check; raises PlaybookRejected."""
    kinds = KnownKinds()
    return make_plan(load_valid(text, kinds), text, kinds)


def beside(parent: str, path: str) -> str:
    """The path in the catalog that a file beside the parent's stands for."""
    bare = path.removesuffix(".yml").removesuffix(".yaml")
    return posixpath.normpath(posixpath.join(posixpath.dirname(parent), bare))


def child_file(path: str, folder: str, bounds: Bounds) -> Path:
    """TOOL-1: a file relative to the parent's, within the bounds of every path of a playbook."""
    from noetl.tools.paths import inside
    from noetl.tools.refusal import Refusal

    try:
        for candidate in (path, f"{path}.yaml", f"{path}/playbook.yaml"):
            file = inside(folder, candidate, bounds.files, bounds.private)
            if file.is_file():
                return file
    except Refusal as refusal:
        raise UnreadableFile(str(refusal)) from None
    raise UnreadableFile(f"no playbook '{path}': looked in the catalog and in {folder}")
