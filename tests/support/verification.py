"""
Every execution that a test makes must prove itself: each decision follows from what was recorded.

A plugin of pytest. When a test is over, the homes in its `tmp_path` are looked through; homes in
memory when they are closed. Tests that write logs by hand, or damage them, say so with the marker
`unproven`. How many were verified stands at the end of the report.
"""

import asyncio
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

BY_HAND = ("tests/contracts/", "tests/unit/adapters/")
"""Folders whose tests write decisions that nobody decided."""
COUNT = "verified_executions"
IN_MEMORY = "noetl.node.local"
"""Where homes in memory are opened and closed: without it no test that was collected has one."""


class Verification:
    """Counts what was verified, and keeps what did not verify for the test that made it."""

    def __init__(self) -> None:
        self.count = 0
        self.wrong: list[str] = []
        self.others = 0
        """What the other processes of the suite have verified."""

    def take(self, found: dict[str, Any]) -> None:
        self.count += len(found)
        self.wrong += [f"{name}: {one.message}" for name, one in found.items() if not one.ok]

    async def home_on_disk(self, folder: Path) -> None:
        from tests.support.proofs import verify_all

        from noetl.adapters.files.object_store import FileObjectStore
        from noetl.adapters.sqlite.storage import open_storage
        from noetl.errors import LogUnavailable
        from noetl.ports.result_store import ResultStore

        try:
            home = await open_storage(folder)
        except LogUnavailable:  # made by a newer program, or no home at all: the test knows
            return
        try:
            results = ResultStore(FileObjectStore(folder / "results"))
            self.take(await verify_all(home.log, home.playbooks, results, home.executions))
        finally:
            await home.close()

    def watch_memory(self) -> None:
        """Let homes in memory be verified when their process closes them."""
        from tests.support.proofs import verify_all

        from noetl.adapters.memory.storage import MemoryStorage
        from noetl.errors import NoetlError
        from noetl.node.local import LocalNode

        close = LocalNode.close

        async def close_and_verify(local: LocalNode) -> None:
            await close(local)
            home = local.storage
            if isinstance(home, MemoryStorage):
                proving = verify_all(home.log, home.playbooks, local.results, home.executions)
                # In a thread, which is waited for: in simulated time nobody else could be.
                with ThreadPoolExecutor(1) as thread:
                    proved = thread.submit(asyncio.run, proving)
                if isinstance(fault := proved.exception(), NoetlError):  # written by hand, perhaps
                    self.wrong.append(str(fault))
                else:
                    self.take(proved.result())

        setattr(LocalNode, "close", close_and_verify)  # noqa: B010


KEPT = pytest.StashKey[Verification]()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "unproven: makes logs that do not follow, on purpose")
    config.stash[KEPT] = Verification()


def pytest_collection_finish(session: pytest.Session) -> None:
    if IN_MEMORY in sys.modules:
        session.config.stash[KEPT].watch_memory()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    yield
    verification = item.config.stash[KEPT]
    path = getattr(item, "funcargs", {}).get("tmp_path")
    unproven = item.get_closest_marker("unproven") is not None
    if not unproven and path is not None and not item.nodeid.startswith(BY_HAND):
        for file in sorted(path.rglob("noetl.db")):
            asyncio.run(verification.home_on_disk(file.parent))
    wrong, verification.wrong = verification.wrong, []
    assert unproven or not wrong, "executions that do not verify:\n" + "\n".join(wrong)


def pytest_sessionfinish(session: pytest.Session) -> None:
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output[COUNT] = session.config.stash[KEPT].count


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """A process of the suite has ended: its count joins ours."""
    node.config.stash[KEPT].others += getattr(node, "workeroutput", {}).get(COUNT, 0)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    verification = config.stash[KEPT]
    count = verification.count + verification.others
    terminalreporter.write_line(f"{count} executions verified: every decision follows from its log")
