"""What is pinned in the files `requirements.lock`, and what the wheel needs of it."""

import re
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution

import msgspec
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from tests.house.tree import ROOT

from noetl.extras import DISTRIBUTION

LOCK = ROOT / "requirements.lock"
LOCKS = (LOCK, ROOT / "ui" / "requirements.lock")
HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})\b")


class Pin(msgspec.Struct, frozen=True):
    """One package of the lock."""

    name: str
    version: str
    hashes: tuple[str, ...]


def pins_in(text: str) -> dict[str, Pin]:
    """The packages for this Python by name; a line that pins nothing is a ValueError."""
    pins: dict[str, Pin] = {}
    for line in text.replace("\\\n", " ").splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        wanted = Requirement(line.partition("--hash")[0].strip())
        versions = [one.version for one in wanted.specifier if one.operator == "=="]
        if len(versions) != 1:
            raise ValueError(f"this line of the lock pins nothing: {wanted}")
        if wanted.marker is None or wanted.marker.evaluate():
            name = canonicalize_name(wanted.name)
            pins[name] = Pin(name, versions[0], tuple(HASH.findall(line)))
    return pins


def locked() -> dict[str, Pin]:
    return {name: pin for lock in LOCKS for name, pin in pins_in(lock.read_text("utf-8")).items()}


def needs_of(found: Distribution, extras: Iterable[str] = ()) -> Iterator[Requirement]:
    """What a package asks for here, with these extras of it."""
    for text in found.requires or ():
        requirement = Requirement(text)
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            yield requirement


def closure(extras: Iterable[str] = ()) -> dict[str, set[str]]:
    """Every package that the wheel brings with these extras → those that it asks for itself."""
    found: dict[str, set[str]] = {}
    ahead = [(DISTRIBUTION, frozenset(extras))]
    while ahead:
        name, wanted = ahead.pop()
        needs = list(needs_of(distribution(name), wanted))
        names = {canonicalize_name(need.name) for need in needs} - {name}
        if name in found and names <= found[name]:
            continue
        found[name] = found.get(name, set()) | names
        ahead += [(canonicalize_name(need.name), frozenset(need.extras)) for need in needs]
    return found


def installed_version(name: str) -> str | None:
    try:
        return distribution(name).version
    except PackageNotFoundError:
        return None
