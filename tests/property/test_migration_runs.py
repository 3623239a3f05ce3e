"""A playbook of an older dialect comes to what its canonical twin comes to (DIA)."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from tests.property.run_model import OLDER, Book, Language, books, written
from tests.property.test_migration import dumped
from tests.support.one_run import OneRun, run_text, told
from tests.support.searching import examples

from noetl.node.local import LocalNode
from noetl.playbook.dialects.migrate import migrate
from noetl.settings import Settings
from noetl.tools.table import Toolbox

STYLE: dict[str, Any] = {"Dumper": yaml.CSafeDumper, "width": 1000}


class Engine:
    """One node for many runs: what it takes to start one is paid once."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.runner = asyncio.Runner()
        self.local = self.runner.run(self._opened())

    async def _opened(self) -> LocalNode:
        return LocalNode.in_memory(Settings(home=self.home), Toolbox(self.home))

    def ran(self, text: str) -> OneRun:
        return self.runner.run(self._ran(text))

    async def _ran(self, text: str) -> OneRun:
        return await told(self.local, await run_text(self.local, text, self.home))

    def close(self) -> None:
        self.runner.run(self.local.close())
        self.runner.close()


def came_to(run: OneRun) -> tuple[Any, ...]:
    kind = None if run.error is None else run.error["kind"]
    return run.status, run.steps, run.result, kind


@pytest.mark.rule("DIA-S2", "DIA-S4", "DIA-UP")
@pytest.mark.parametrize("language", OLDER)
def test_a_translated_playbook_comes_to_the_same(
    language: Language, tmp_path_factory: pytest.TempPathFactory
) -> None:
    engine = Engine(tmp_path_factory.mktemp(language))

    @examples(400)
    @given(books())
    def compare(book: Book) -> None:
        older = dumped(written(book, language), STYLE)
        migrated = migrate(older)
        assert migrated.complete, f"{older}\n{migrated.findings}"
        wanted = came_to(engine.ran(dumped(written(book, "canonical"), STYLE)))
        found = came_to(engine.ran(migrated.text))
        assert found == wanted, f"{older}\n---\n{migrated.text}"

    try:
        compare()
    finally:
        engine.close()
