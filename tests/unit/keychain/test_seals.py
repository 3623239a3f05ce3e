"""Values in the log that hold a secret: sealed, opened, and unreadable to others."""

from pathlib import Path
from typing import Any

import pytest

from noetl.adapters.memory.credentials import MemoryCredentials
from noetl.adapters.sqlite.credentials import SqliteCredentials
from noetl.errors import BodyLost
from noetl.keychain.keys import KeySource
from noetl.keychain.seals import ROOM, Seals
from noetl.keychain.store import Store
from noetl.masking import MASK, Masking
from noetl.messages.codec import decode, encode
from noetl.messages.reference import Reference, secret


def seals(masking: Masking | None = None) -> Seals:
    return Seals(Store(MemoryCredentials(), KeySource(None, {})), masking or Masking())


@pytest.mark.parametrize(
    "value",
    [
        "Bearer tok-en-1",
        "",
        12345678,
        {"user": "u", "nested": ["tok-en-1", None, 1.5]},
        {"$secret": {"id": "only", "sealed": "data"}},
        "ümlaut \u2028 \x00",
    ],
)
def test_a_value_comes_back_as_it_was(value: Any) -> None:
    own = seals()
    sealed = own.seal(value)
    assert isinstance(sealed, Reference)
    recorded = encode({"ctx": sealed})
    assert b"tok-en-1" not in recorded
    assert recorded.startswith(b'{"ctx":{"$secret":{"id":')
    assert own.open(decode(recorded)["ctx"]) == value


def test_a_value_holds_what_is_stored_elsewhere() -> None:
    own = seals()
    reference = Reference("files", "e/1", 10, "c")
    assert own.open(own.seal({"big": reference})) == {"big": reference}


def test_the_same_value_is_sealed_once_and_equal_ones_are_equal() -> None:
    own = seals()
    assert own.seal("x") is own.seal("x")
    again = Seals(own._store, Masking())
    assert again.seal("x") == own.seal("x") != own.seal("y")
    assert again.seal("x").sealed != own.seal("x").sealed


def test_few_are_remembered() -> None:
    own = seals()
    first = own.seal("value 0")
    for number in range(ROOM):
        own.seal(f"value {number + 1}")
    assert len(own._sealed) <= ROOM
    assert own.open(first) == "value 0"


def test_who_opens_it_masks_what_is_in_it() -> None:
    known, fresh = Masking(), Masking()
    known.add("tok-en-1")
    known.add("not-in-it")
    own = seals(known)
    sealed = own.seal("Bearer tok-en-1")
    assert Seals(own._store, fresh).open(sealed) == "Bearer tok-en-1"
    assert fresh.masked("tok-en-1 not-in-it") == f"{MASK} not-in-it"


@pytest.mark.parametrize("change", ["id", "text", "key", "form"])
def test_what_was_changed_does_not_open(change: str) -> None:
    own = seals()
    sealed = own.seal("x")
    assert sealed.sealed is not None
    key_id, _, text = sealed.sealed.partition(":")
    changed = {
        "id": secret("0" * 24, sealed.sealed),
        "text": secret(sealed.key, f"{key_id}:{text[:-8]}AAAAAAA="),
        "key": secret(sealed.key, f"{'0' * 12}:{text}"),
        "form": secret(sealed.key, "nothing"),
    }[change]
    with pytest.raises(BodyLost, match="cannot be read"):
        own.open(changed)


def test_a_rotation_leaves_the_log_readable(tmp_path: Path) -> None:
    store = Store(SqliteCredentials(tmp_path), KeySource(tmp_path, {}))
    sealed = Seals(store, Masking()).seal("kept")
    store.rotate()
    later = Store(SqliteCredentials(tmp_path), KeySource(tmp_path, {}))
    fresh = Seals(later, Masking())
    assert fresh.open(sealed) == "kept"
    assert fresh.seal("kept").sealed != sealed.sealed


def test_a_home_without_its_key_says_what_it_needs(tmp_path: Path) -> None:
    sealed = Seals(Store(SqliteCredentials(tmp_path), KeySource(tmp_path, {})), Masking()).seal("x")
    (tmp_path / "key").unlink()
    later = Seals(Store(SqliteCredentials(tmp_path), KeySource(tmp_path, {})), Masking())
    with pytest.raises(BodyLost, match="set NOETL_KEY or NOETL_KEY_FILE to the right one"):
        later.open(sealed)
