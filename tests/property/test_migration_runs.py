"""A playbook of an older dialect comes to what its canonical twin comes to (DIA)."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from tests.property.run_model import OLDER, Book, Language, books, written
from tests.property.test_migration import dumped
from tests.support.one_run import OneRun, run_file

from noetl.playbook.dialects.migrate import migrate

EACH = 670
"""Playbooks in each dialect: 2,000 in all."""
STYLE: dict[str, Any] = {"Dumper": yaml.CSafeDumper, "width": 1000}


def ran(text: str, folder: Path) -> OneRun:
    file = folder / "playbook.yaml"
    file.write_text(text)
    run, _ = asyncio.run(run_file(file, folder / "home"))
    return run


def came_to(run: OneRun) -> tuple[Any, ...]:
    kind = None if run.error is None else run.error["kind"]
    return run.status, run.steps, run.result, kind


@pytest.mark.rule("DIA-S2", "DIA-S4", "DIA-UP")
@pytest.mark.parametrize("language", OLDER)
def test_a_translated_playbook_comes_to_the_same(
    language: Language, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp(language)

    @settings(max_examples=EACH)
    @given(books())
    def compare(book: Book) -> None:
        older = dumped(written(book, language), STYLE)
        migrated = migrate(older)
        assert migrated.complete, f"{older}\n{migrated.findings}"
        wanted = came_to(ran(dumped(written(book, "canonical"), STYLE), folder))
        found = came_to(ran(migrated.text, folder))
        assert found == wanted, f"{older}\n---\n{migrated.text}"

    compare()
