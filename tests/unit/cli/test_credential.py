"""`noetl credential`: how secrets get in, and what is said about them."""

import asyncio
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from noetl.adapters.sqlite.storage import open_storage
from noetl.cli.credential import ON_THE_LINE, credential
from noetl.cli.main import main
from noetl.keychain.keys import KeySource
from noetl.keychain.store import Store


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NOETL_HOME", str(tmp_path))
    monkeypatch.delenv("NOETL_KEY", raising=False)
    return tmp_path


def stored(home: Path, name: str) -> tuple[str, dict[str, Any]] | None:
    async def found() -> tuple[str, dict[str, Any]] | None:
        opened = await open_storage(home)
        try:
            return await Store(opened.credentials, KeySource(home, {})).fields(name)
        finally:
            await opened.close()

    return asyncio.run(found())


def say(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(["credential", *words])
    told = capsys.readouterr()
    return code, told.out, told.err


def give(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))


@pytest.mark.parametrize(
    ("kind", "text", "fields"),
    [
        ("bearer", "the-token\n", {"token": "the-token"}),
        ("postgres", "the-password", {"password": "the-password", "host": "db"}),
        ("generic", "two\nlines\n", {"value": "two\nlines"}),
        ("generic", "[1]", {"value": "[1]"}),
        ("generic", '{"value": "x"}', {"value": "x"}),
        ("s3", '{"access_key_id":"a","secret_access_key":"b"}', {"access_key_id": "a"}),
        ("nats", '{"user":"u","password":"p"}', {"user": "u", "password": "p"}),
    ],
)
@pytest.mark.parametrize("way", ["--stdin", "--file"])
def test_a_secret_comes_by_standard_input_or_file(
    way: str,
    kind: str,
    text: str,
    fields: dict[str, str],
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = [way]
    if way == "--file":
        (home / "given").write_text(text)
        words.append(str(home / "given"))
    else:
        give(monkeypatch, text)
    if kind == "postgres":
        words += ["--field", "host=db"]
    code, out, err = say(capsys, "add", "it", "--kind", f"{kind}_credential", *words)
    assert (code, err) == (0, "")
    assert out.startswith(f"registered 'it' ({kind}: ")
    found = stored(home, "it")
    assert found is not None
    assert found[0] == kind
    assert fields.items() <= found[1].items()


def test_a_secret_on_the_command_line_is_warned_of(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = say(
        capsys, "add", "b", "--kind", "basic", "--field", "user=u", "--field", "password=a=b"
    )
    assert code == 0
    assert err.strip() == ON_THE_LINE
    assert stored(home, "b") == ("basic", {"user": "u", "password": "a=b"})


def test_a_person_is_asked_unseen(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("noetl.cli.credential.sys", type("sys", (), {"stdin": Terminal()}))
    asked = CliRunner().invoke(credential, ["add", "b", "--kind", "basic"], input="anna\nhidden\n")
    assert asked.exit_code == 0, asked.output
    assert "hidden" not in asked.output
    assert stored(home, "b") == ("basic", {"user": "anna", "password": "hidden"})


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("add", "x", "--kind", "bearer"), "nothing to register: give --stdin, --file or --field"),
        (("add", "x", "--kind", "bearer", "--stdin", "--file", "f"), "exclude each other"),
        (("add", "x", "--kind", "bearer", "--file", "nowhere"), "cannot read 'nowhere'"),
        (("add", "x", "--kind", "bearer", "--field", "hidden-text"), "--field expects KEY=VALUE"),
        (("add", "x", "--kind", "bearer", "--stdin"), "the secret is empty"),
        (("add", "x"), "Missing option '--kind'"),
        (
            ("add", "a b", "--kind", "generic", "--field", "value=v"),
            "is not a valid credential name",
        ),
        (("show", "x"), "no credential 'x'; see `noetl credential list`"),
        (("rm", "x"), "no credential 'x'; see `noetl credential list`"),
    ],
)
def test_what_is_wrong_is_said(
    words: tuple[str, ...],
    says: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    give(monkeypatch, "")
    code, _, err = say(capsys, *words)
    assert code == 3
    assert says in err
    assert "hidden-text" not in err


def test_json_for_programs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def answer(*words: str) -> Any:
        code, out, _ = say(capsys, *words, "--json")
        assert code == 0
        return json.loads(out)

    give(monkeypatch, '{"user":"u","password":"p"}')
    made = {"name": "b", "kind": "basic", "fields": ["password", "user"]}
    assert answer("add", "b", "--kind", "basic", "--stdin") == made
    assert answer("show", "b") == made
    listed = answer("list")
    assert (listed["name"], listed["kind"]) == ("b", "basic")
    rotated = answer("rotate")
    assert rotated["credentials"] == 1
    assert answer("list")["key_id"] == rotated["key_id"] != listed["key_id"]
    assert answer("rm", "b") == {"name": "b", "removed": True}


def test_for_people(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert say(capsys, "list")[2].startswith("no credentials; see:")
    give(monkeypatch, '{"user":"anna","password":"hidden"}')
    say(capsys, "add", "b", "--kind", "basic", "--stdin")
    assert say(capsys, "show", "b")[1] == "b (basic)\n  password = ***\n  user\n"
    assert say(capsys, "list")[1].split()[:2] == ["b", "basic"]
    assert "1 credentials encrypted" in say(capsys, "rotate")[1]
    assert say(capsys, "rm", "b")[1] == "removed 'b'\n"


@pytest.mark.parametrize("name", ["", "add", "list", "show", "rm", "rotate"])
def test_every_command_has_an_example(name: str) -> None:
    told = CliRunner().invoke(credential, [*name.split(), "--help"])
    assert told.exit_code == 0
    assert "noetl credential" in told.output.partition("Examples:")[2]


def test_alone_it_says_what_it_can(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = say(capsys)
    assert code == 0
    assert "rotate" in out


@pytest.mark.parametrize("words", [["list"], ["show", "pg"], ["rm", "pg"]])
def test_looking_makes_no_home(
    words: list[str], home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    say(capsys, *words)
    assert list(home.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ('{"user": "u", "password": "hunter22",}', "line 1, column 38"),
        ("{'user': 'u', 'password': 'hunter22'}", "line 1, column 2"),
        ('{"user": "u",\n "password": "hunter22"', "line 2, column 24"),
    ],
)
def test_json_that_is_broken_is_refused_without_being_shown(
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    text: str,
    where: str,
) -> None:
    give(monkeypatch, text)
    code, out, err = say(capsys, "add", "pg", "--kind", "postgres", "--stdin")
    assert (code, where in err, "hunter22" in out + err) == (3, True, False)
    assert '{"password": "…"}' in err
    assert not (home / "noetl.db").exists()


def test_a_misspelt_name_is_answered_with_the_one_that_was_meant(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    give(monkeypatch, "the-token")
    assert say(capsys, "add", "api_main", "--kind", "bearer", "--stdin")[0] == 0
    for verb in ("show", "rm"):
        _, _, err = say(capsys, verb, "api_mian")
        assert "no credential 'api_mian'; did you mean 'api_main'?" in err
