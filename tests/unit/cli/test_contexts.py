"""Which server is meant, and with which token."""

from pathlib import Path

import pytest

from noetl.cli.contexts import (
    FILE,
    Context,
    Target,
    contexts_in,
    target_of,
    write_contexts,
)
from noetl.errors import SettingRefused

ONE, TWO, EVIL = "http://one:1", "http://two:2", "http://evil:6"
IN_PROJECT = f"context = 'evil'\n[contexts.evil]\nserver = '{EVIL}'\n"
HIDDEN = f"[contexts.bare]\nserver = '{EVIL}'\n"
ITS_HOME = "home = 'theirs'\n"


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
        # … and to none that only a project's file names: alone, as a context, or in its home.
        ((None, None), {"NOETL_TOKEN": "t"}, f"server = '{EVIL}'", None, Target(EVIL)),
        ((None, None), {"NOETL_TOKEN": "t"}, IN_PROJECT, None, Target(EVIL, None, "evil")),
        ((None, "evil"), {"NOETL_TOKEN": "t"}, IN_PROJECT, None, Target(EVIL, None, "evil")),
        ((None, "bare"), {"NOETL_TOKEN": "t"}, HIDDEN, None, Target(EVIL, None, "bare")),
        ((None, None), {"NOETL_TOKEN": "t", "NOETL_HOME": ""}, ITS_HOME, None, (EVIL, None, "x")),
        ((None, "bare"), {"NOETL_TOKEN": "t"}, "", None, Target(TWO, "t", "bare")),
        # … one in a file only to the server beside it.
        ((TWO, None), {}, f"server = '{ONE}'\ntoken = 't'", None, Target(TWO)),
        ((None, None), {}, f"server = '{ONE}'\ntoken = 't'", None, Target(ONE, "t")),
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
    wanted: Target | tuple[str | None, ...],
) -> None:
    keep(home, in_use)
    write_contexts(Path("theirs"), {"x": Context(name="x", server=EVIL)}, "x")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    if in_file:
        Path("noetl.toml").write_text(in_file)
    assert target_of(*flags) == (Target(*wanted) if isinstance(wanted, tuple) else wanted)


def test_contexts_of_the_folder_hide_those_of_the_home(home: Path) -> None:
    keep(home, None)
    Path("noetl.toml").write_text(f"[contexts.prod]\nserver = '{TWO}'\n")
    assert target_of(None, "prod") == Target(TWO, None, "prod")


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
