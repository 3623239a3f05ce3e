"""What the catalog of registered playbooks promises."""

import asyncio
from typing import Any

import pytest
from tests.contracts.homes import Homes

from noetl.playbook.plan import digest_of
from noetl.ports.catalog import CatalogEntry, Registration, id_of, parts_of
from noetl.ports.storage import Storage


async def register(home: Storage, path: str, text: str, **fields: Any) -> tuple[CatalogEntry, bool]:
    usual: dict[str, Any] = {"digest": digest_of(text), "name": "hello"}
    if "original" in fields:
        usual["original_digest"] = digest_of(fields["original"])
    return await home.catalog.register(Registration(path=path, text=text, **(usual | fields)))


async def ids(home: Storage, **asked: Any) -> list[str]:
    return [entry.playbook_id for entry in await home.catalog.page(**asked)]


@pytest.mark.rule("SRV-1")
async def test_an_entry_comes_back_whole(homes: Homes) -> None:
    home, other = await homes.open(), await homes.open()
    labels = {"team": "dätä", "n": 3, "deep": {"x": None}}
    entry, fresh = await register(
        home, "demo/hello", "name: héllo\n", name="Héllo", description="Says it.", labels=labels
    )
    assert fresh
    assert (entry.playbook_id, entry.path, entry.version) == ("demo/hello:1", "demo/hello", 1)
    assert (entry.digest, entry.name) == (digest_of("name: héllo\n"), "Héllo")
    assert (entry.description, entry.labels, entry.original_digest) == ("Says it.", labels, None)
    assert entry.registered_at > 1_700_000_000_000
    assert await other.catalog.find("demo/hello") == entry
    assert await other.catalog.find("demo/hello", 1) == entry
    assert await other.catalog.by_id("demo/hello:1") == entry
    assert await other.playbooks.text(entry.digest) == ("name: héllo\n", None)


@pytest.mark.rule("SRV-1")
async def test_another_text_is_the_next_version(homes: Homes) -> None:
    home, other = await homes.open(), await homes.open()
    made = [await register(each, "p", text) for each, text in ((home, "a"), (other, "b"))]
    assert [(entry.version, fresh) for entry, fresh in made] == [(1, True), (2, True)]
    assert await home.catalog.find("p") == made[1][0]
    assert await home.catalog.find("p", 1) == made[0][0], "what ran with it finds it again"
    entry, fresh = await register(home, "p", "a")
    assert (entry.version, fresh) == (3, True), "going back is a version too"


@pytest.mark.rule("SRV-1")
async def test_the_same_text_again_is_no_version(homes: Homes) -> None:
    home, other = await homes.open(), await homes.open()
    first, _ = await register(home, "p", "a", name="first")
    assert await register(other, "p", "a", name="second") == (first, False)
    assert [entry.version for entry in await home.catalog.versions("p")] == [1]
    elsewhere, fresh = await register(home, "q", "a")
    assert (elsewhere.playbook_id, fresh) == ("q:1", True)


@pytest.mark.rule("SRV-1")
async def test_all_at_once_get_a_version_each(homes: Homes) -> None:
    opened = [await homes.open() for _ in range(3)]
    made = await asyncio.gather(
        *(register(opened[n % 3], "p", f"text {n}") for n in range(12)),
        *(register(opened[n % 3], "q", "the same") for n in range(6)),
    )
    entries = [entry for entry, _ in made[:12]]
    assert sorted(entry.version for entry in entries) == list(range(1, 13))
    assert all(fresh for _, fresh in made[:12])
    for entry in entries:
        assert await opened[0].catalog.find("p", entry.version) == entry
    assert {entry.playbook_id for entry, _ in made[12:]} == {"q:1"}
    assert [fresh for _, fresh in made[12:]].count(True) == 1


async def test_what_was_migrated_is_still_readable(homes: Homes) -> None:
    home, other = await homes.open(), await homes.open()
    entry, _ = await register(home, "p", "new dialect", original="old dialect")
    assert entry.original_digest == digest_of("old dialect")
    assert await other.catalog.original("p:1") == "old dialect"
    assert await other.playbooks.text(entry.digest) == ("new dialect", None)
    await register(home, "p", "never migrated")
    assert await other.catalog.original("p:2") is None
    assert await other.catalog.original("p:3") is None


async def test_a_text_that_ran_from_a_file_keeps_its_folder(homes: Homes) -> None:
    home = await homes.open()
    await home.playbooks.keep(digest_of("a"), "p", "a", "examples")
    await register(home, "p", "a")
    assert await home.playbooks.text(digest_of("a")) == ("a", "examples")


@pytest.mark.parametrize(
    "playbook_id",
    ["p", "p:", "p:0", "p:2", "p:-1", "p:x", "p:01", "q:1", ":1", "", "p:1:1", "p:²", "p\0:1"],
)
async def test_an_id_of_nothing(homes: Homes, playbook_id: str) -> None:
    home = await homes.open()
    await register(home, "p", "a")
    assert await home.catalog.by_id(playbook_id) is None
    assert await home.catalog.original(playbook_id) is None


@pytest.mark.parametrize(
    ("path", "version"), [("q", None), ("p", 0), ("p", 2), ("p", -1), ("", None)]
)
async def test_nothing_is_found(homes: Homes, path: str, version: int | None) -> None:
    home = await homes.open()
    await register(home, "p", "a")
    assert await home.catalog.find(path, version) is None


@pytest.mark.rule("SRV-1")
async def test_a_page_is_the_newest_of_each_path(homes: Homes) -> None:
    home = await homes.open()
    assert await ids(home) == []
    for path in ("b", "a/ü", "a/x", "B", "a"):
        await register(home, path, f"{path} 1")
    await register(home, "a/x", "a/x 2")
    everything = ["B:1", "a:1", "a/x:2", "a/ü:1", "b:1"]
    assert await ids(home) == everything
    pages = [await ids(home, limit=2)]
    while pages[-1]:
        after = pages[-1][-1].rpartition(":")[0]
        pages.append(await ids(home, limit=2, after=after))
    assert pages == [everything[:2], everything[2:4], everything[4:], []]


@pytest.mark.rule("SRV-1")
async def test_versions_are_newest_first(homes: Homes) -> None:
    home = await homes.open()
    for n in range(5):
        await register(home, "p", f"text {n}")

    async def versions(**asked: Any) -> list[int]:
        return [entry.version for entry in await home.catalog.versions("p", **asked)]

    assert await versions() == [5, 4, 3, 2, 1]
    assert await versions(limit=2) == [5, 4]
    assert await versions(limit=2, before=4) == [3, 2]
    assert await versions(before=1) == []
    assert list(await home.catalog.versions("q")) == []


@pytest.mark.parametrize(("path", "version"), [("p", 1), ("a/b:c", 12)])
def test_an_id_has_two_parts(path: str, version: int) -> None:
    assert parts_of(id_of(path, version)) == (path, version)


@pytest.mark.rule("SRV-1", "DOC-2")
async def test_versions_are_found_by_what_their_author_calls_them(homes: Homes) -> None:
    home, other = await homes.open(), await homes.open()
    for text, label in (("a", "1.0"), ("b", "é-rc1"), ("c", "1.0"), ("d", None)):
        await register(home, "p", text, version_label=label)
    await register(home, "q", "a", version_label="é-rc1")
    assert [entry.version for entry in await other.catalog.labelled("p", "1.0")] == [3, 1]
    (found,) = await other.catalog.labelled("p", "é-rc1")
    assert (found.version, found.version_label) == (2, "é-rc1")
    assert found == await other.catalog.find("p", 2)
    assert await other.catalog.labelled("p", "1") == []
    newest = await other.catalog.find("p")
    assert newest is not None
    assert newest.version_label is None


@pytest.mark.rule("SRV-1")
async def test_a_removed_version_is_gone_and_its_number_is_given_to_no_other(homes: Homes) -> None:
    home, other = await homes.open(), await homes.open()
    for text in ("a", "b", "c"):
        await register(home, "p", text, version_label="x")
    await register(home, "q", "q")
    await home.catalog.remove("p", 3)
    await home.catalog.remove("p", 3)
    await home.catalog.remove("p", 9)
    assert await other.catalog.find("p", 3) is None
    assert await other.catalog.by_id("p:3") is None
    found = await other.catalog.find("p")
    assert found is not None
    assert found.version == 2
    assert [entry.version for entry in await other.catalog.versions("p")] == [2, 1]
    assert [entry.version for entry in await other.catalog.labelled("p", "x")] == [2, 1]
    assert await ids(other) == ["p:2", "q:1"]
    assert await other.playbooks.text(digest_of("c")) == ("c", None), "what ran it keeps its text"
    entry, fresh = await register(home, "p", "b")
    assert (entry.version, fresh) == (2, False)
    entry, fresh = await register(home, "p", "c")
    assert (entry.version, fresh) == (4, True)
    for version in (1, 2, 4):
        await home.catalog.remove("p", version)
    assert await other.catalog.find("p") is None
    assert await ids(other) == ["q:1"]
    assert await ids(other, limit=1) == ["q:1"]
    entry, fresh = await register(home, "p", "c")
    assert (entry.version, fresh) == (5, True)
