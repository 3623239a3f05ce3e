"""`noetl context`: kept, used, listed, forgotten."""

import io
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from noetl.cli.contexts import FILE, target_of
from noetl.cli.main import main


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("NOETL_SERVER", "NOETL_TOKEN", "NOETL_CONTEXT", "NOETL_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NOETL_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def listed(capsys: pytest.CaptureFixture[str]) -> dict[str, dict[str, object]]:
    capsys.readouterr()
    assert main(["context", "list", "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return {row["name"]: row for row in rows}


def test_a_server_is_named_used_and_forgotten(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("noetl.cli.context.sys", SimpleNamespace(stdin=io.StringIO("noetl_t\n")))
    assert main(["context", "add", "prod", "--server", "http://one:1/", "--token-stdin"]) == 0
    assert main(["context", "add", "test", "--server", "http://two:2"]) == 0
    assert target_of(None, None).local
    assert main(["context", "use", "prod"]) == 0
    assert (target_of(None, None).url, target_of(None, None).token) == ("http://one:1", "noetl_t")
    rows = listed(capsys)
    assert {name: row["in_use"] for name, row in rows.items()} == {
        "local": False,
        "prod": True,
        "test": False,
    }
    assert (rows["prod"]["token"], rows["test"]["token"]) == (True, False)
    assert main(["context", "rm", "prod"]) == 0
    assert target_of(None, None).local
    assert "noetl_t" not in (home / FILE).read_text()
    assert listed(capsys)["local"]["in_use"] is True


def test_the_list_shows_no_token(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home.mkdir()
    (home / FILE).write_text("[contexts.prod]\nserver = 'http://one:1'\ntoken = 'noetl_t'\n")
    assert main(["context", "list"]) == 0
    out = capsys.readouterr().out
    assert "prod             http://one:1  (with a token)" in out
    assert "noetl_t" not in out


def test_back_to_the_home(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["context", "add", "prod", "--server", "http://one:1"]) == 0
    assert main(["context", "use", "prod"]) == 0
    assert main(["context", "use", "local"]) == 0
    assert capsys.readouterr().out.endswith("commands talk to the home now\n")
    assert target_of(None, None).local
    assert home.exists()
