"""What the doctor sees, and what it says about it."""

import base64
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from noetl.cli import doctor as doctors
from noetl.cli.background.launch import used_by
from noetl.cli.contexts import Target
from noetl.cli.doctor import checks_of, extras
from noetl.cli.main import main
from noetl.extras import command_for
from noetl.node.pid_file import PidFile
from noetl.settings import SETTINGS, Settings

NOWHERE = Target(None)


@contextmanager
def greeting(words: bytes) -> Iterator[int]:
    """A port on loopback that says these words to whoever connects."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def greet() -> None:
            peer, _ = listening.accept()
            with peer:
                peer.sendall(words)

        thread = threading.Thread(target=greet)
        thread.start()
        yield listening.getsockname()[1]
        thread.join(20)


def states(settings: Settings) -> dict[str, str]:
    return {check.name: check.state for check in checks_of(settings, NOWHERE)}


def test_a_machine_that_nobody_has_used_is_well(tmp_path: Path) -> None:
    home = tmp_path / "home"
    found = states(Settings(home=home))
    assert found == {
        "home": "ok",
        "server here": "absent",
        "database": "ok",
        "key": "absent",
        "queue": "absent",
        "server": "absent",
        "clock": "ok",
        "isolation": "ok",
        "extras": "ok",
    }
    assert not home.exists()


def test_a_key_opens_what_is_sealed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it the first task that needs a credential would be the first to say so."""
    monkeypatch.setenv("NOETL_HOME", str(tmp_path))
    assert main(["credential", "add", "db", "--kind", "generic", "--field", "word=abcdefgh"]) == 0
    assert states(Settings(home=tmp_path))["key"] == "ok"
    (tmp_path / "key").rename(tmp_path / "elsewhere")
    lost = next(one for one in checks_of(Settings(home=tmp_path), NOWHERE) if one.name == "key")
    assert (lost.state, "'db'" in lost.says) == ("failed", True)
    monkeypatch.setenv("NOETL_KEY", base64.b64encode(bytes(32)).decode())
    assert states(Settings(home=tmp_path))["key"] == "failed"


def test_the_server_that_runs_here_says_what_it_uses(tmp_path: Path) -> None:
    theirs = Settings(home=tmp_path, db="postgresql://app:hunter2@db/noetl")
    mine = Settings(home=tmp_path)
    with PidFile(tmp_path, "server").held("a server") as tell:
        tell("http://127.0.0.1:8765", uses=used_by(theirs))
        told = next(one for one in checks_of(mine, NOWHERE) if one.name == "server here")
    assert told.state == "ok"
    assert "database postgresql://app:***@db/noetl, queue none, auth" in told.says
    assert f"the settings here say otherwise: database SQLite in {tmp_path}" in told.says
    assert "hunter2" not in told.says


def test_a_home_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file")
    assert states(Settings(home=tmp_path / "home"))["home"] == "failed"


@pytest.mark.parametrize(("words", "state"), [(b"INFO {}", "ok"), (b"SSH-2", "failed")])
def test_a_queue_is_known_by_its_greeting(tmp_path: Path, words: bytes, state: str) -> None:
    with greeting(words) as port:
        settings = Settings(home=tmp_path, queue=f"nats://127.0.0.1:{port}")
        assert states(settings)["queue"] == state


def test_a_queue_that_does_not_greet_is_not_waited_for(tmp_path: Path) -> None:
    """A web socket says nothing before it is asked."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        queue = f"ws://127.0.0.1:{silent.getsockname()[1]}"
        assert states(Settings(home=tmp_path, queue=queue))["queue"] == "ok"


def test_what_is_away_is_said_without_its_password(tmp_path: Path) -> None:
    settings = Settings(
        home=tmp_path,
        db="postgresql://app:hunter22@127.0.0.1:9/x",
        queue="nats://app:hunter22@127.0.0.1:9",
    )
    checks = checks_of(settings, Target("http://127.0.0.1:9", "hunter22"))
    failed = {check.name for check in checks if check.state == "failed"}
    assert failed == {"database", "key", "queue", "server", "clock"}
    assert "hunter22" not in " ".join(check.says for check in checks)


@pytest.mark.parametrize(
    ("ahead", "state", "said"),
    [(0.2, "ok", "0.2 s behind"), (-60.0, "failed", "60.0 s ahead of"), (60.0, "failed", "behind")],
)
def test_a_clock_is_compared_with_the_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ahead: float, state: str, said: str
) -> None:
    async def asked(_url: str) -> tuple[str, float]:
        return "18", ahead

    monkeypatch.setattr(doctors, "asked_postgres", asked)
    check = doctors.clock(Settings(home=tmp_path, db="postgresql://x/y"))
    assert check.state == state
    assert said in check.says


def test_extras_that_are_not_installed_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctors, "is_installed", lambda extra: extra != "quantum")
    assert f"; not: quantum ({command_for('NAME')})" in extras().says


def test_every_setting_is_shown_with_its_origin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for field in SETTINGS:
        monkeypatch.delenv(f"NOETL_{field.upper()}", raising=False)
    monkeypatch.setenv("NOETL_HOME", str(tmp_path))
    monkeypatch.setenv("NOETL_TOKEN", "hunter22")
    Path("noetl.toml").write_text("pool = 'gpu'\n")
    assert main(["doctor", "--json"]) == 0
    out = capsys.readouterr().out
    rows = {row["setting"]: row for row in json.loads(out)["settings"]}
    assert set(rows) == set(SETTINGS)
    assert rows["token"] == {"setting": "token", "value": "***", "origin": "NOETL_TOKEN"}
    assert (rows["pool"]["value"], Path(rows["pool"]["origin"]).name) == ("gpu", "noetl.toml")
    assert main(["doctor"]) == 0
    assert "hunter22" not in out + capsys.readouterr().out


def test_what_the_file_of_the_folder_may_not_set_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NOETL_HOME", str(tmp_path / "home"))
    Path("noetl.toml").write_text("namespaces = 'off'\nresults = 's3://evil/x'\n")
    assert main(["doctor", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    first = told["checks"][0]
    assert (first["name"], first["state"]) == ("settings", "failed")
    assert "cannot set results, namespaces so" in first["says"]
    rows = {row["setting"]: (row["value"], row["origin"]) for row in told["settings"]}
    assert (rows["namespaces"], rows["results"]) == (("auto", "default"), (None, "default"))
