"""Which version of a playbook is meant: a number of the catalog, or what its author calls it."""

from noetl.errors import PlaybookNotFound
from noetl.expression.meant import MOST_NAMES, closest
from noetl.ports.catalog import Catalog, CatalogEntry, number_in

SHOWN = 20
"""Versions that a refusal names."""

Version = int | str | None


async def find_entry(catalog: Catalog, path: str, version: Version) -> CatalogEntry | None:
    """
    The newest version, or the one asked for; None where the path is not there.

    A number that the catalog gave is its own. Any other text is `metadata.version` (DOC-2), which
    may stand behind the path too: `shop/load@2024-09-rc1`. Raises PlaybookNotFound where no
    version is called so, or several texts are.
    """
    if version is None:
        found = await catalog.find(path)
        name, at, label = path.rpartition("@")
        if found is not None or not at:
            return found
        return await find_entry(catalog, name, label)
    number = version if isinstance(version, int) else number_in(version)
    found = None if number is None else await catalog.find(path, number)
    return found or await _labelled(catalog, path, str(version))


async def known_paths(catalog: Catalog) -> list[str]:
    """Paths of the catalog to compare a name with, as many as is worth it."""
    return [entry.path for entry in await catalog.page(limit=MOST_NAMES)]


async def near_path(catalog: Catalog, path: str) -> str:
    """What to say after a path that is not there: the one that was meant, if one is near."""
    near = closest(path, await known_paths(catalog))
    return "" if near is None else f"; did you mean '{near}'?"


async def _labelled(catalog: Catalog, path: str, label: str) -> CatalogEntry | None:
    found = await catalog.labelled(path, label)
    if len({entry.digest for entry in found}) > 1:
        numbers = ", ".join(str(entry.version) for entry in found[:SHOWN])
        raise PlaybookNotFound(
            f"'{label}' is what several versions of '{path}' are called: {numbers}; name one of "
            "them by its number"
        )
    if found:
        return found[0]
    kept = await catalog.versions(path, limit=SHOWN)
    if not kept:
        return None
    known = ", ".join(
        str(entry.version) + (f" ({entry.version_label})" if entry.version_label else "")
        for entry in kept
    )
    raise PlaybookNotFound(f"no version of '{path}' is called '{label}'; there are: {known}")
