"""What is installed is what was pinned, and the bill of materials has all of it."""

import json
import re

import pytest
from tests.house.audit import advisories_in, faults_of, verdict
from tests.house.packages import Pin, closure, locked, pins_in
from tests.house.sbom import EXTRAS, document

from noetl.extras import DISTRIBUTION

HASH = "0" * 64
TOLD = json.dumps(
    {
        "dependencies": [
            {"name": "good", "version": "1", "vulns": []},
            {"name": "bad", "version": "2", "vulns": [{"id": "PYSEC-1", "fix_versions": ["3"]}]},
        ]
    }
)
SKIPPED = json.dumps({"dependencies": [{"name": "unknown", "skip_reason": "not found"}]})


def test_the_lock_is_whole() -> None:
    assert list(faults_of(locked())) == []


@pytest.mark.parametrize(
    ("pin", "says"),
    [
        (Pin("click", "0.1", (HASH,)), "is installed, 0.1 is pinned"),
        (Pin("nobody-has-this", "1", ()), "nobody-has-this 1 has no hash"),
    ],
)
def test_a_pin_that_does_not_hold_is_named(pin: Pin, says: str) -> None:
    assert says in "\n".join(faults_of(locked() | {pin.name: pin}))


def test_what_is_asked_for_and_not_pinned_is_named() -> None:
    pins = {name: pin for name, pin in locked().items() if name != "msgspec"}
    assert list(faults_of(pins)) == ["msgspec is asked for in pyproject.toml and is not pinned"]


def test_a_line_that_pins_nothing_is_refused() -> None:
    assert pins_in(f"a==1 \\\n    --hash=sha256:{HASH}\n") == {"a": Pin("a", "1", (HASH,))}
    with pytest.raises(ValueError, match="pins nothing: b>=1"):
        pins_in("b>=1\n")


def test_what_is_known_fails_and_what_nobody_told_is_no_verdict() -> None:
    known = advisories_in(TOLD)
    assert known == ["bad 2: PYSEC-1 (fixed in 3)"]
    with pytest.raises(ValueError, match="1 of 1 packages: not found"):
        advisories_in(SKIPPED)
    assert verdict(locked(), known, strict=False)[0] == 1
    assert verdict(locked(), [], strict=True)[0] == 0
    code, said = verdict(locked(), "no network", strict=False)
    assert (code, "NOT CHECKED" in said) == (0, True)
    assert verdict(locked(), "no network", strict=True)[0] == 1


def test_the_bill_of_materials_has_every_package_once_with_version_hash_and_licence() -> None:
    made = document()
    assert (made["bomFormat"], made["specVersion"]) == ("CycloneDX", "1.6")
    assert re.fullmatch(r"urn:uuid:[0-9a-f-]{36}", made["serialNumber"])
    names = [one["name"] for one in made["components"]]
    assert names == sorted(set(names))
    assert set(names) == closure(EXTRAS).keys() - {DISTRIBUTION}
    pins = locked()
    for one in made["components"]:
        assert one["version"] == pins[one["name"]].version
        assert one["externalReferences"][0]["hashes"], one["name"]
    needed = {one["name"] for one in made["components"] if one["scope"] == "required"}
    assert {"aiohttp", "click", "jinja2", "markupsafe"} <= needed
    assert not needed & {"nats-py", "qiskit", "obstore", "pytest", "mypy"}
    unlicensed = [one["name"] for one in made["components"] if not one["licenses"]]
    assert len(unlicensed) <= 3, unlicensed
    references = {one["bom-ref"] for one in [*made["components"], made["metadata"]["component"]]}
    assert {one["ref"] for one in made["dependencies"]} == references
    assert all(below in references for one in made["dependencies"] for below in one["dependsOn"])


def test_the_same_lock_gives_the_same_document() -> None:
    assert document() == document()
