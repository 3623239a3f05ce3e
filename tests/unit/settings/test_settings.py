"""Where a setting comes from, and what of it may be shown."""

import re
from pathlib import Path

import pytest

from noetl.errors import SettingRefused
from noetl.settings import SETTINGS, Setting, Settings, read_settings, read_with_origins, shown

DB = "postgresql://app:hunter22@db/noetl"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_nothing_has_to_be_set(folder: Path) -> None:
    reading = read_with_origins({})
    assert reading.settings == Settings(home=Path.home() / ".noetl")
    assert set(reading.origins.values()) == {"default"}
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("flags", "environment", "in_file", "port", "origin"),
    [
        ({"port": 1}, {"NOETL_PORT": "2"}, "port = 3", 1, "flag"),
        ({"port": None}, {"NOETL_PORT": "2"}, "port = 3", 2, "NOETL_PORT"),
        ({}, {"NOETL_PORT": ""}, "port = 3", 3, "noetl.toml"),
        ({}, {}, "pool = 'gpu'", 8765, "default"),
    ],
)
def test_the_first_place_that_has_it_wins(
    folder: Path,
    flags: dict[str, int],
    environment: dict[str, str],
    in_file: str,
    port: int,
    origin: str,
) -> None:
    (folder / "noetl.toml").write_text(in_file)
    reading = read_with_origins(environment, flags=flags)
    assert reading.settings.port == port
    assert Path(reading.origins["port"]).name == origin


def test_a_file_can_be_named(folder: Path) -> None:
    file = folder / "elsewhere" / "mine.toml"
    file.parent.mkdir()
    file.write_text("home = 'runs'\nauth = true\nlease_ttl = 20\n[contexts.prod]\nserver = 'x'\n")
    (folder / "noetl.toml").write_text("pool = 'unread'\n")
    found = read_settings({"NOETL_CONFIG": str(file)})
    assert found.home == folder / "elsewhere" / "runs"
    assert (found.auth, found.lease_ttl, found.pool) == (True, 20.0, "default")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("prot = 1", "there is no setting 'prot'; did you mean 'port'?"),
        ("zzzzzz = 1", f"there is no setting 'zzzzzz'; there are: {', '.join(SETTINGS)}"),
        ("port = [1]", "port must be a port, 0 to 65535, got a list"),
        ("port = 70000", "port must be a port, 0 to 65535, got '70000'"),
        ("port = ", "it must be TOML"),
    ],
)
def test_a_file_that_cannot_be_meant_is_refused(folder: Path, text: str, said: str) -> None:
    (folder / "noetl.toml").write_text(text)
    with pytest.raises(SettingRefused) as refused:
        read_settings({})
    assert said in str(refused.value)
    assert "noetl.toml" in str(refused.value)


def test_a_named_file_must_be_there(folder: Path) -> None:
    with pytest.raises(SettingRefused, match=r"names .gone[.]toml., which is not a file"):
        read_settings({"NOETL_CONFIG": "gone.toml"})
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("NOETL_DB", "mysql://x/y", "postgresql://USER:PASSWORD@HOST/NAME, got 'mysql://x/y'"),
        ("NOETL_DB", "mysql://a:secret1@x", r"got 'mysql://a:\*\*\*@x'"),
        ("NOETL_QUEUE", "localhost", "nats://HOST:PORT, got 'localhost'"),
        ("NOETL_RESULTS", "ftp://x", "files, postgres, nats, s3://BUCKET/PREFIX or gs://"),
        ("NOETL_SERVER", "http://", "http://HOST:PORT, got 'http://'"),
        ("NOETL_POOL", "a b", "a name, got 'a b'"),
        ("NOETL_PORT", "-1", "a port, 0 to 65535, got '-1'"),
        ("NOETL_LEASE_TTL", "0.5", "a number of seconds >= 1, got '0.5'"),
    ],
)
def test_a_value_that_cannot_be_is_refused(name: str, text: str, said: str) -> None:
    with pytest.raises(SettingRefused, match=said):
        read_settings({name: text})


def test_the_last_slash_of_a_server_does_not_matter() -> None:
    assert read_settings({"NOETL_SERVER": "http://one:1/"}).server == "http://one:1"


@pytest.mark.parametrize("field", ["db", "queue", "server"])
@pytest.mark.parametrize("password", ["hunt/er22", "hun#ter22", "hun?ter22", "hun@ter/22"])
def test_a_password_that_is_not_encoded_is_refused_and_not_repeated(
    field: str, password: str
) -> None:
    """Else a piece of it would be taken for the host, the port or the database, and be named."""
    scheme = {"db": "postgresql", "queue": "nats", "server": "http"}[field]
    address = f"{scheme}://app:{password}@host/name"
    with pytest.raises(SettingRefused, match=rf"got '{scheme}://app:\*\*\*@host/name'") as refused:
        read_settings({f"NOETL_{field.upper()}": address})
    assert not any(piece in str(refused.value) for piece in re.split(r"\W", password))


def test_a_password_may_hold_what_is_no_sign_of_an_address() -> None:
    db = "postgresql://app:a,b:c%2F%40;!@host/name"
    assert read_settings({"NOETL_DB": db}).db == db


@pytest.mark.parametrize(
    ("field", "value", "seen"),
    [
        ("db", DB, "postgresql://app:***@db/noetl"),
        ("queue", "nats://tok:en@n:4222", "nats://tok:***@n:4222"),
        ("queue", "nats://hunter22@n:4222", "nats://***@n:4222"),
        (
            "queue",
            "nats://u:hunter22@a:1,nats://u:hunter22@b:2",
            "nats://u:***@a:1,nats://u:***@b:2",
        ),
        ("db", "postgresql://app:hun@ter/22@db/noetl", "postgresql://app:***@db/noetl"),
        (
            "db",
            "postgresql://db/x?user=a&password=hunter22",
            "postgresql://db/x?user=a&password=***",
        ),
        (
            "db",
            "postgresql://db/x?sslpassword=hunter22&a=b",
            "postgresql://db/x?sslpassword=***&a=b",
        ),
        ("server", "https://hunter22@noetl.example", "https://***@noetl.example"),
        ("token", "noetl_1234567", "***"),
        ("token", None, None),
        ("home", Path("/x"), "/x"),
        ("port", 1, 1),
    ],
)
def test_what_is_shown_holds_no_secret(field: str, value: object, seen: object) -> None:
    assert shown(field, value) == seen


@pytest.mark.rule("KEEP-1")
def test_no_task_reaches_the_folders_of_archives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    policies = f"1d archive={tmp_path}/a; 2d archive=file://{tmp_path}/b; 3d archive=results; 4d"
    set_so = Settings(home=tmp_path / "home", retention=f"{policies}; 5d archive=s3://lake/c")
    private = [Path(one).name for one in set_so.bounds.private]
    assert private == ["home", "a", "b"]


THE_USERS = (
    "home = 'h'",
    "home = '/'",
    "db = 'postgresql://evil/x'",
    "queue = 'nats://evil:4222'",
    "results = 's3://evil/x'",
    "host = '0.0.0.0'",
    "retention_days = 0",
    "retention = '0d archive=/tmp/x'",
    "files = '/'",
    "files = '..'",
    "files = 'link'",
    "auth = false",
    "http_deny = 'none'",
    "libs_build = 1",
    "namespaces = 'off'",
)
HARMLESS = (
    "files = 'd'",
    "files = '.'",
    "auth = true",
    "http_deny = 'private'",
    "libs_build = false",
    "namespaces = 'demand'",
    "port = 0",
    "server = 'http://staging'",
)


@pytest.mark.parametrize("line", THE_USERS)
def test_the_file_of_a_folder_takes_no_protection_away(folder: Path, line: str) -> None:
    """It may come with foreign playbooks; who names a file by a variable knows it."""
    (folder / "link").symlink_to("/")
    file = folder / "noetl.toml"
    file.write_text(f"{line}\n")
    field, _, text = line.partition(" = ")
    with pytest.raises(SettingRefused, match=rf"cannot set {field} so.*set NOETL_{field.upper()}"):
        read_settings({})
    told = read_settings({"NOETL_CONFIG": str(file)})
    by_hand = read_settings({f"NOETL_{field.upper()}": text.strip("'")})
    if field in ("home", "files"):
        assert getattr(told, field) == folder / getattr(by_hand, field)
    else:
        assert getattr(told, field) == getattr(by_hand, field)
    looked = read_with_origins({}, looking=True)
    assert looked.settings == Settings(home=Path.home() / ".noetl")
    assert field in (looked.refused or "")
    assert looked.origins[field] == "default"


@pytest.mark.parametrize("line", HARMLESS)
def test_what_protects_no_less_can_stand_in_the_file_of_a_folder(folder: Path, line: str) -> None:
    (folder / "noetl.toml").write_text(f"{line}\n")
    assert read_with_origins({}).origins[line.partition(" ")[0]] == str(folder / "noetl.toml")


def test_all_that_is_refused_is_told_at_once(folder: Path) -> None:
    (folder / "noetl.toml").write_text("auth = false\nhost = '::'\nport = 1\n")
    with pytest.raises(SettingRefused, match=r"host, auth so.*NOETL_HOST, NOETL_AUTH"):
        read_settings({})
    assert read_settings({"NOETL_HOST": "::", "NOETL_AUTH": "0"}).port == 1


def test_a_setting_is_the_user_s_unless_its_row_says_otherwise() -> None:
    """Deny by default: whoever adds a setting says what the file of a folder may do with it."""
    assert Setting(str, "", "").folder == "never"
    assert {name for name, row in SETTINGS.items() if row.folder == "never"} == {
        line.partition(" ")[0] for line in THE_USERS
    } - {"files", "auth", "http_deny", "libs_build", "namespaces"}


def test_the_usual_home_is_private_where_another_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(folder))
    assert Settings(home=folder / "other").bounds.private == (str(folder / "other"),)
    (folder / ".noetl").mkdir()
    private = Settings(home=folder / "other").bounds.private
    assert private == (str(folder / "other"), str(folder / ".noetl"))
    assert Settings(home=folder / ".noetl").bounds.private == (str(folder / ".noetl"),)


@pytest.mark.parametrize("text", ["a = " + "[" * 20_000, "#" * 2_000_000])
def test_a_file_that_no_reader_gets_through_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "noetl.toml").write_text(text)
    with pytest.raises(SettingRefused, match="it must be TOML"):
        read_with_origins({}, folder=tmp_path)
