"""Every snippet of the source documents is a playbook: valid or migrated, and it runs."""

import asyncio
from pathlib import Path

import pytest
from tests.conformance.snippets import FOLDER, Snippet, snippets
from tests.support.http_server import HttpServer
from tests.support.one_run import run_file

from noetl.playbook.dialects.migrate import migrate
from noetl.playbook.load import load

ALL = snippets(*sorted(path.stem for path in FOLDER.glob("*.yaml")))


@pytest.mark.parametrize("snippet", ALL, ids=str)
def test_a_snippet_is_valid_or_migrates(snippet: Snippet) -> None:
    for text in snippet.texts():
        migrated = migrate(text)
        assert [one for one in migrated.findings if one.severity == "error"] == []
        assert migrated.changed == snippet.older
        assert (load(text).playbook is None) == snippet.older
        assert migrate(migrated.text).rewrites == ()


@pytest.mark.parametrize("snippet", [one for one in ALL if one.ends is not None], ids=str)
def test_a_snippet_runs(snippet: Snippet, tmp_path: Path, http_server: HttpServer) -> None:
    for number, text in enumerate(snippet.texts()):
        file = tmp_path / f"playbook{number}.yaml"
        file.write_text(migrate(text.replace("API_URL", http_server.url)).text)
        run, _ = asyncio.run(run_file(file, tmp_path / f"home{number}"))
        ends = {"status": run.status, "ctx": run.ctx, "steps": run.steps}
        assert ends == snippet.ends, text


def test_a_snippet_that_does_not_run_says_why() -> None:
    assert [one.name for one in ALL if (one.ends is None) != bool(one.why)] == []
