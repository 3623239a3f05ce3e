"""Which server is meant, and with which token."""

from pathlib import Path
from typing import Any

import pytest

from noetl.cli.contexts import (
    FILE,
    Context,
    Target,
    contexts_in,
    target_of,
    write_contexts,
)
from noetl.cli.main import main
from noetl.errors import SettingRefused

ONE, TWO, EVIL = "http://one:1", "http://two:2", "http://evil:6"
IN_PROJECT = f"context = 'evil'\n[contexts.evil]\nserver = '{EVIL}'\n"
HIDDEN = f"[contexts.bare]\nserver = '{EVIL}'\n"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("NOETL_SERVER", "NOETL_TOKEN", "NOETL_CONTEXT", "NOETL_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NOETL_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def keep(home: Path, chosen: str | None) -> None:
    known = [
        Context(name="prod", server=ONE, token="t-prod"),
        Context(name="bare", server=TWO),
    ]
    write_contexts(home, {one.name: one for one in known}, chosen)


def test_without_anything_it_is_the_home(home: Path) -> None:
    assert target_of(None, None) == Target(None)
    assert not home.exists()


@pytest.mark.parametrize(
    ("flags", "environment", "in_file", "in_use", "wanted"),
    [
        # A flag beats everything; a server beats a context that is named in the same place.
        ((TWO, "prod"), {"NOETL_SERVER": ONE}, "", "prod", Target(TWO)),
        ((None, "prod"), {"NOETL_SERVER": TWO}, "", None, Target(ONE, "t-prod", "prod")),
        ((None, None), {"NOETL_SERVER": TWO, "NOETL_CONTEXT": "prod"}, "", None, Target(TWO)),
        ((None, None), {"NOETL_CONTEXT": "bare"}, f"server = '{ONE}'", None, (TWO, None, "bare")),
        ((None, None), {}, "context = 'prod'", "bare", Target(ONE, "t-prod", "prod")),
        ((None, None), {}, "", "prod", Target(ONE, "t-prod", "prod")),
        # `local` leads home again, from anywhere.
        ((None, "local"), {"NOETL_SERVER": TWO}, "", "prod", Target(None, None, "local")),
        # The token of the environment goes to whatever server the user named, …
        ((ONE, None), {"NOETL_TOKEN": "t"}, "", None, Target(ONE, "t")),
        ((ONE, None), {"NOETL_TOKEN": "t"}, f"server = '{TWO}'", None, Target(ONE, "t")),
        ((None, None), {"NOETL_TOKEN": "t", "NOETL_SERVER": ONE}, "", None, Target(ONE, "t")),
        ((None, None), {"NOETL_TOKEN": "t"}, "context = 'bare'", None, Target(TWO, "t", "bare")),
        # … and to none that only a project's file names, alone or as a context; …
        ((None, None), {"NOETL_TOKEN": "t"}, f"server = '{EVIL}'", None, (EVIL, None, None, False)),
        ((None, None), {"NOETL_TOKEN": "t"}, IN_PROJECT, None, (EVIL, None, "evil", False)),
        ((None, "evil"), {"NOETL_TOKEN": "t"}, IN_PROJECT, None, (EVIL, None, "evil", False)),
        # … nor does its context stand in for the user's own of that name, …
        ((None, "bare"), {"NOETL_TOKEN": "t"}, HIDDEN, None, Target(TWO, "t", "bare")),
        ((None, None), {}, HIDDEN, "bare", Target(TWO, None, "bare")),
        ((None, "bare"), {"NOETL_TOKEN": "t"}, "", None, Target(TWO, "t", "bare")),
        # … one in a file only to the server beside it.
        ((TWO, None), {}, f"server = '{ONE}'\ntoken = 't'", None, Target(TWO)),
        ((None, None), {}, f"server = '{ONE}'\ntoken = 't'", None, (ONE, "t", None, False)),
        ((ONE, None), {}, "", None, Target(ONE, "t-prod")),
    ],
)
def test_who_is_meant(
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    flags: tuple[str | None, str | None],
    environment: dict[str, str],
    in_file: str,
    in_use: str | None,
    wanted: Target | tuple[Any, ...],
) -> None:
    keep(home, in_use)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    if in_file:
        Path("noetl.toml").write_text(in_file)
    assert target_of(*flags) == (Target(*wanted) if isinstance(wanted, tuple) else wanted)


def test_a_file_that_the_user_names_speaks_for_the_user(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(home, None)
    Path("noetl.toml").write_text(IN_PROJECT)
    monkeypatch.setenv("NOETL_CONFIG", "noetl.toml")
    monkeypatch.setenv("NOETL_TOKEN", "t")
    assert target_of(None, None) == Target(EVIL, "t", "evil")


@pytest.mark.parametrize(
    "command",
    ["credential add api --kind bearer --field token=hunter22", "worker start --timeout 1"],
)
@pytest.mark.parametrize("in_file", [f"server = '{EVIL}'\n", IN_PROJECT])
def test_what_would_trust_a_server_needs_one_that_the_user_named(
    home: Path, capsys: pytest.CaptureFixture[str], command: str, in_file: str
) -> None:
    """It would hand a secret to whoever wrote the file, or run what that one sends."""
    Path("noetl.toml").write_text(in_file)
    assert main(command.split()) == 3
    said = capsys.readouterr().err
    assert f"of this folder names the server {EVIL}" in said
    assert "name it yourself: --server URL" in said
    assert not home.exists()


def test_only_the_owner_can_read_what_is_kept(home: Path) -> None:
    keep(home, "prod")
    assert (home / FILE).stat().st_mode & 0o777 == 0o600
    assert [one.token for one in contexts_in(home / FILE).values()] == ["t-prod", None]


def test_an_unknown_context_is_answered_with_those_there_are(home: Path) -> None:
    keep(home, None)
    with pytest.raises(SettingRefused, match="no context 'prd'; there are: local, prod, bare"):
        target_of(None, "prd")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("contexts = 3", "contexts must be tables"),
        ("[contexts.x]\n", "contexts.x needs a server"),
        ("[contexts.x]\nserver = 'x:1'", "contexts.x: server must be http://HOST:PORT"),
        ("[contexts.x]\nserver = 'http://x'\nurl = ''", "there is no key 'url'"),
        ("[contexts", "it must be TOML"),
    ],
)
def test_a_broken_file_is_refused(home: Path, text: str, said: str) -> None:
    home.mkdir()
    (home / FILE).write_text(text)
    with pytest.raises(SettingRefused, match=said):
        target_of(None, "x")
