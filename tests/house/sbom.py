"""
`make sbom`: what the wheel brings with it, as a CycloneDX document.

It is made of `requirements.lock` and of what the packages say of themselves: the same lock gives
the same document. Packages that only an extra brings are `optional`.
"""

import json
import uuid
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

from tests.house.packages import Pin, closure, locked
from tests.house.tree import ROOT

from noetl.extras import DISTRIBUTION

EXTRAS = tuple(distribution(DISTRIBUTION).metadata.get_all("Provides-Extra") or ())
FOLDER = ROOT / "dist"


def document() -> dict[str, Any]:
    """The bill of materials."""
    pins, always, everything = locked(), closure(), closure(EXTRAS)
    components = [
        component(pins[name], needed=name in always)
        for name in sorted(everything.keys() - {DISTRIBUTION})
    ]
    version = distribution(DISTRIBUTION).version
    graph = [
        {"ref": purl(name, pins), "dependsOn": sorted(purl(one, pins) for one in needs)}
        for name, needs in sorted(everything.items())
    ]
    text = json.dumps([components, graph], sort_keys=True)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, text)}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": purl(DISTRIBUTION, pins),
                "name": DISTRIBUTION,
                "version": version,
                "purl": purl(DISTRIBUTION, pins),
                "licenses": licences_of(DISTRIBUTION),
            }
        },
        "components": components,
        "dependencies": graph,
    }


def purl(name: str, pins: dict[str, Pin]) -> str:
    version = pins[name].version if name in pins else distribution(name).version
    return f"pkg:pypi/{name}@{version}"


def component(pin: Pin, *, needed: bool) -> dict[str, Any]:
    made: dict[str, Any] = {
        "type": "library",
        "bom-ref": f"pkg:pypi/{pin.name}@{pin.version}",
        "name": pin.name,
        "version": pin.version,
        "scope": "required" if needed else "optional",
        "purl": f"pkg:pypi/{pin.name}@{pin.version}",
        "licenses": licences_of(pin.name),
        # One for each file that the index has of this version: an installer accepts any of them.
        "externalReferences": [
            {
                "type": "distribution",
                "url": f"pkg:pypi/{pin.name}@{pin.version}",
                "hashes": [{"alg": "SHA-256", "content": one} for one in pin.hashes],
            }
        ],
    }
    return made


def licences_of(name: str) -> list[dict[str, Any]]:
    """What the package says of its licence: an SPDX expression, or the words of an older one."""
    told = distribution(name).metadata
    for expression in told.get_all("License-Expression") or ():
        return [{"expression": expression}]
    classified = [
        line.rpartition(" :: ")[2]
        for line in told.get_all("Classifier") or ()
        if line.startswith("License :: ")
    ]
    words = classified or [text.split("\n")[0] for text in told.get_all("License") or ()]
    return [{"license": {"name": word}} for word in words if word]


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    path = Path(FOLDER, f"{DISTRIBUTION}-{distribution(DISTRIBUTION).version}.cdx.json")
    made = document()
    path.write_text(json.dumps(made, indent=2) + "\n", "utf-8")
    print(f"wrote {path.relative_to(ROOT)}: {len(made['components'])} components")


if __name__ == "__main__":
    main()
