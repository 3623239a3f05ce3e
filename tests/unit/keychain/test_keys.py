"""Where keys come from, how they are kept, and what is refused."""

import base64
import os
import stat
from pathlib import Path

import pytest

from noetl.errors import CredentialUnreadable, SettingRefused
from noetl.keychain.box import Key, new_key
from noetl.keychain.keys import FILE, KeySource
from noetl.masking import KNOWN, MASK


def text_of(*keys: bytes) -> str:
    return ",".join(base64.b64encode(key).decode() for key in keys)


def test_what_is_sealed_opens_with_the_same_key_and_meaning() -> None:
    key = Key(new_key())
    sealed = key.seal(b"plain", b"about")
    assert b"plain" not in sealed
    assert key.open(sealed, b"about") == b"plain"
    assert key.seal(b"plain", b"about") != sealed


@pytest.mark.parametrize("change", ["key", "about", "text", "short"])
def test_nothing_else_opens_it(change: str) -> None:
    key = Key(new_key())
    sealed = key.seal(b"plain", b"about")
    about = b"another" if change == "about" else b"about"
    if change == "text":
        sealed = sealed[:-1] + bytes([sealed[-1] ^ 1])
    opener = Key(new_key()) if change == "key" else key
    with pytest.raises(CredentialUnreadable, match=opener.id):
        opener.open(b"x" if change == "short" else sealed, about)


def test_a_key_tells_nothing_about_itself() -> None:
    secret = new_key()
    key = Key(secret)
    assert secret.hex() not in repr(key)
    assert key.id == Key(secret).id != Key(new_key()).id
    assert key.name_of(b"x") == Key(secret).name_of(b"x") != Key(new_key()).name_of(b"x")


def test_the_home_gets_a_private_key_when_one_is_needed(tmp_path: Path) -> None:
    home = tmp_path / "home"
    KeySource(home, {}).make()
    first = KeySource(home, {}).ring.newest
    assert stat.S_IMODE((home / FILE).stat().st_mode) == 0o600
    assert KeySource(home, {}).ring.newest.id == first.id
    assert [path.name for path in home.iterdir()] == [FILE]


def test_two_that_begin_at_once_get_the_same_key(tmp_path: Path) -> None:
    one, two = KeySource(tmp_path, {}), KeySource(tmp_path, {})
    one.make()
    made = (tmp_path / FILE).read_text()
    two.make()
    assert (tmp_path / FILE).read_text() == made


def test_asking_for_a_key_makes_none(tmp_path: Path) -> None:
    with pytest.raises(CredentialUnreadable, match=f"there is no key in {tmp_path / FILE}"):
        _ = KeySource(tmp_path, {}).ring
    assert list(tmp_path.iterdir()) == []


def test_the_environment_comes_before_the_home(tmp_path: Path) -> None:
    key, other = new_key(), new_key()
    source = KeySource(tmp_path, {"NOETL_KEY": text_of(key, other)})
    assert source.ring.newest.id == Key(key).id
    assert source.find(Key(other).id, "it").id == Key(other).id
    assert not (tmp_path / FILE).exists()


def test_a_file_elsewhere_is_named(tmp_path: Path) -> None:
    key = new_key()
    path = tmp_path / "elsewhere"
    path.write_text(text_of(key) + "\n")
    path.chmod(0o600)
    source = KeySource(tmp_path / "home", {"NOETL_KEY_FILE": str(path)})
    assert source.ring.newest.id == Key(key).id


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("secret words", "key 1 is not 32 bytes in base64"),
        ("c2hvcnQ=", "key 1 is not 32 bytes in base64"),
        (",", "NOETL_KEY is empty"),
    ],
)
def test_a_wrong_key_is_refused_and_not_repeated(text: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(SettingRefused, match=says) as refused:
        _ = KeySource(tmp_path, {"NOETL_KEY": text}).ring
    assert "secret words" not in str(refused.value)


def test_a_named_file_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    path = tmp_path / "nowhere"
    with pytest.raises(SettingRefused, match="there is no file"):
        _ = KeySource(tmp_path, {"NOETL_KEY_FILE": str(path)}).ring
    assert not path.exists()


def test_a_key_that_others_may_read_is_refused(tmp_path: Path) -> None:
    KeySource(tmp_path, {}).make()
    (tmp_path / FILE).chmod(0o644)
    with pytest.raises(SettingRefused, match="chmod 600"):
        _ = KeySource(tmp_path, {}).ring


def test_a_key_file_that_is_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / FILE).mkdir()
    with pytest.raises(SettingRefused, match="cannot be read"):
        _ = KeySource(tmp_path, {}).ring


def test_growing_keeps_the_old_key_and_shrinking_drops_it(tmp_path: Path) -> None:
    source, watcher = KeySource(tmp_path, {}), KeySource(tmp_path, {})
    source.make()
    old = source.ring.newest.id
    assert watcher.ring.newest.id == old
    new = source.grow().newest.id
    assert [key.id for key in source.ring.all] == [new, old]
    assert watcher.find(new, "it").id == new  # it learns of the rotation
    source.shrink()
    assert [key.id for key in source.ring.all] == [new]
    with pytest.raises(CredentialUnreadable, match=f"it was sealed with key {old}"):
        source.find(old, "it")
    assert os.listdir(tmp_path) == [FILE]


@pytest.mark.parametrize("act", ["make", "grow", "shrink"])
def test_a_key_file_survives_a_power_cut(
    act: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything is sealed with it: the file, then its place in the folder."""
    source = KeySource(tmp_path, {})
    if act == "shrink":
        source.grow()
    synced = []
    real = os.fsync
    with monkeypatch.context() as patch:

        def fsync(descriptor: int) -> None:
            synced.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
            real(descriptor)

        patch.setattr(os, "fsync", fsync)
        getattr(source, act)()
    assert synced == ["file", "folder"]


def test_keys_of_the_environment_do_not_grow(tmp_path: Path) -> None:
    source = KeySource(tmp_path, {"NOETL_KEY": text_of(new_key())})
    assert source.fixed
    with pytest.raises(SettingRefused, match="a comma and the old one"):
        source.grow()
    source.shrink()
    assert list(tmp_path.iterdir()) == []


def test_a_key_is_a_secret_itself(tmp_path: Path) -> None:
    key = new_key()
    _ = KeySource(tmp_path, {"NOETL_KEY": text_of(key)}).ring
    assert KNOWN.masked(f"NOETL_KEY={text_of(key)}") == f"NOETL_KEY={MASK}"


def test_a_home_in_memory_has_a_key_of_its_own() -> None:
    given = new_key()
    source = KeySource(None, {}, given=given)
    assert source.ring.newest.id == Key(given).id
    grown = source.grow()
    assert len(grown.all) == 2
    assert KeySource(None, {}).ring.newest.id != Key(given).id
