"""KEY-2: a key that is missing is never replaced where something is sealed, in any store."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from tests.contracts.homes import Homes

from noetl.errors import CredentialUnreadable, NoetlError, SettingRefused
from noetl.keychain.keys import FILE, KeySource
from noetl.keychain.store import Store

pytestmark = pytest.mark.rule("KEY-2")

ACTS: dict[str, Callable[[Store], Awaitable[object]]] = {
    "add": lambda store: store.add("new", "generic", {"value": "v"}),
    "replace": lambda store: store.add("a", "generic", {"value": "v"}),
    "open": lambda store: store.fields("a"),
    "seal": lambda store: store.log_key(),
    "rotate": lambda store: store.rotate(),
}


async def filled(homes: Homes, folder: Path) -> Store:
    """A store with a credential and a key of recorded secrets."""
    store = Store((await homes.open()).credentials, KeySource(folder, {}))
    await store.add("a", "generic", {"value": "of a"})
    await store.log_key()
    await store.keep_own("link", b"signs")
    return store


async def opened(homes: Homes, folder: Path) -> Store:
    """The same as another process sees it."""
    return Store((await homes.open()).credentials, KeySource(folder, {}))


@pytest.mark.parametrize("act", ACTS)
async def test_a_lost_key_is_named_and_no_other_is_made(
    act: str, homes: Homes, tmp_path: Path
) -> None:
    running = await filled(homes, tmp_path)
    kept = (tmp_path / FILE).read_bytes()
    (tmp_path / FILE).unlink()
    store = await opened(homes, tmp_path)
    with pytest.raises(CredentialUnreadable, match=r"put it back.*rotate --lost"):
        await ACTS[act](store)
    with pytest.raises(CredentialUnreadable, match="put it back"):
        await running.add("new", "generic", {"value": "v"})
    assert not (tmp_path / FILE).exists()
    (tmp_path / FILE).write_bytes(kept)
    (tmp_path / FILE).chmod(0o600)
    assert await store.fields("a") == ("generic", {"value": "of a"})
    await store.log_key()


async def test_a_key_that_opens_nothing_is_not_rotated(homes: Homes, tmp_path: Path) -> None:
    await filled(homes, tmp_path / "right")
    KeySource(tmp_path / "wrong", {}).make()
    before = (tmp_path / "wrong" / FILE).read_bytes()
    store = await opened(homes, tmp_path / "wrong")
    with pytest.raises(CredentialUnreadable, match="opens any of credential 'a'"):
        await store.rotate()
    assert (tmp_path / "wrong" / FILE).read_bytes() == before


@pytest.mark.parametrize("lost", [False, True])
async def test_a_key_that_encrypts_nothing_here_is_not_dropped(
    lost: bool, homes: Homes, tmp_path: Path
) -> None:
    """What it does encrypt is in a database that was not named, and would be closed for good."""
    empty = await opened(homes, tmp_path)
    with pytest.raises(SettingRefused, match="there is nothing to rotate"):
        await empty.rotate(lost=lost)
    assert not (tmp_path / FILE).exists()
    KeySource(tmp_path, {}).make()
    before = (tmp_path / FILE).read_bytes()
    with pytest.raises(SettingRefused, match="drop it, and with it what it encrypts elsewhere"):
        await empty.rotate(lost=lost)
    assert (tmp_path / FILE).read_bytes() == before


@pytest.mark.parametrize("key", ["missing", "another"])
async def test_a_key_that_is_lost_for_good_is_replaced_when_that_is_said(
    key: str, homes: Homes, tmp_path: Path
) -> None:
    await filled(homes, tmp_path)
    old = (tmp_path / FILE).read_text()
    (tmp_path / FILE).unlink()
    if key == "another":
        KeySource(tmp_path, {}).make()

    store = await opened(homes, tmp_path)
    rotated = await store.rotate(lost=True)
    assert [row.name for row in rotated.unreadable] == ["a"]
    assert (rotated.credentials, rotated.log_keys_lost, rotated.token_keys_lost) == (0, 1, 1)
    await store.add("b", "generic", {"value": "of b"})
    assert (await store.log_key()).id == (await (await opened(homes, tmp_path)).log_key()).id

    # The old key turns up: it becomes another line, and everything is readable again.
    with (tmp_path / FILE).open("a") as file:
        file.write(old)
    found = await opened(homes, tmp_path)
    assert await found.fields("a") == ("generic", {"value": "of a"})
    rotated = await found.rotate()
    assert (rotated.credentials, rotated.unreadable, rotated.log_keys_lost) == (2, [], 0)
    assert await found.own("link") == b"signs"
    assert len((tmp_path / FILE).read_text().split()) == 1


async def test_what_can_be_repaired_is_and_the_rest_is_named(homes: Homes, tmp_path: Path) -> None:
    """A home whose key was replaced while its old rows stayed."""
    await filled(homes, tmp_path / "old")
    mixed = await opened(homes, tmp_path / "new")
    KeySource(tmp_path / "new", {}).make()
    await mixed.add("b", "generic", {"value": "of b"})
    with pytest.raises(CredentialUnreadable):
        await (await opened(homes, tmp_path / "new")).log_key()

    rotated = await mixed.rotate()
    assert [row.name for row in rotated.unreadable] == ["a"]
    assert (rotated.credentials, rotated.log_keys_lost) == (1, 1)
    later = await opened(homes, tmp_path / "new")
    assert await later.fields("b") == ("generic", {"value": "of b"})
    await later.log_key()
    # What was left is as it was: with its key it opens.
    assert await (await opened(homes, tmp_path / "old")).fields("a") is not None


class PowerCut(Exception):
    """Ends a process in the middle."""


POINTS = {
    "before the new key": (KeySource, "grow", "before"),
    "after the new key": (KeySource, "grow", "after"),
    "before the transaction": (Store, "_reseal", "before"),
    "after the transaction": (Store, "_reseal", "after"),
    "before the key of the log": (Store, "_new_log_key", "before"),
    "after the key of the log": (Store, "_new_log_key", "after"),
    "before the old key goes": (KeySource, "shrink", "before"),
    "after the old key went": (KeySource, "shrink", "after"),
}


@pytest.mark.parametrize("point", POINTS)
async def test_a_rotation_can_be_interrupted_anywhere_and_run_again(
    point: str, homes: Homes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner, name, when = POINTS[point]
    log_key = (await (await filled(homes, tmp_path)).log_key()).id
    act = getattr(owner, name)

    def cut(*given: object) -> object:
        if when == "before":
            raise PowerCut
        done = act(*given)
        if owner is KeySource:
            raise PowerCut
        return cut_after(done)

    async def cut_after(done: Awaitable[object]) -> None:
        await done
        raise PowerCut

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, cut)
        with pytest.raises(PowerCut):
            await (await opened(homes, tmp_path)).rotate()
    for _ in range(2):
        store = await opened(homes, tmp_path)
        assert await store.fields("a") == ("generic", {"value": "of a"})
        assert (await store.log_key_of(log_key)).id == log_key
        rotated = await store.rotate()
        assert (rotated.credentials, rotated.unreadable, rotated.log_keys_lost) == (1, [], 0)
    assert len((tmp_path / FILE).read_text().split()) == 1


async def test_one_rotation_at_a_time(homes: Homes, tmp_path: Path) -> None:
    store = await filled(homes, tmp_path)
    with KeySource(tmp_path, {}).alone(), pytest.raises(NoetlError, match="another process"):
        await (await opened(homes, tmp_path)).rotate()
    await store.rotate()
