"""
`make audit`: is what is installed what was pinned, and is anything known against it?

Advisories are asked for by pip-audit, at the package index. No package of the index holds a current
database to ask without a network: `safety-db` ends in 2021. Where the index does not answer this
says so, and the answer is no verdict: AUDIT=strict makes it a failure.
"""

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from tests.house.packages import LOCK, Pin, installed_version, locked
from tests.house.tree import ROOT

from noetl.extras import DISTRIBUTION

PIP_AUDIT = "pip-audit==2.10.1"
PATIENCE = 300.0


def faults_of(pins: Mapping[str, Pin]) -> Iterator[str]:
    """What is wrong by itself, without asking anybody."""
    yield from (f"{pin.name} {pin.version} has no hash" for pin in pins.values() if not pin.hashes)
    for name in wanted():
        if name not in pins:
            yield f"{name} is asked for in pyproject.toml and is not pinned"
    for pin in pins.values():
        found = installed_version(pin.name)
        if found is not None and found != pin.version:
            yield f"{pin.name} {found} is installed, {pin.version} is pinned"


def wanted() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    extras = project["project"]["optional-dependencies"].values()
    groups = [project["project"]["dependencies"], *extras, *project["dependency-groups"].values()]
    requirements = [Requirement(text) for group in groups for text in group]
    here = [one for one in requirements if one.marker is None or one.marker.evaluate()]
    return {str(canonicalize_name(one.name)) for one in here} - {DISTRIBUTION}


def advisories_in(told: str) -> list[str]:
    """What pip-audit's JSON says is known; a ValueError where it could not ask about a package."""
    packages = json.loads(told)["dependencies"]
    skipped = [package["skip_reason"] for package in packages if "skip_reason" in package]
    if skipped:  # it would pass for "nothing is known"
        raise ValueError(f"{len(skipped)} of {len(packages)} packages: {skipped[0]}")
    return [
        f"{package['name']} {package['version']}: {found['id']}"
        f" (fixed in {', '.join(found['fix_versions']) or 'none'})"
        for package in packages
        for found in package["vulns"]
    ]


def asked() -> list[str] | str:
    """What is known against the pinned versions, or why nobody could be asked."""
    uv = os.path.join(os.path.dirname(sys.executable), "uv")
    options = (
        "--requirement",
        str(LOCK),
        "--disable-pip",
        "--format",
        "json",
        "--progress-spinner",
    )
    words = [uv, "tool", "run", "--quiet", "--from", PIP_AUDIT, "pip-audit", *options, "off"]
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, check=False, timeout=PATIENCE, cwd="/"
        )
    except (OSError, subprocess.TimeoutExpired) as wrong:
        return str(wrong)
    try:
        return advisories_in(done.stdout)
    except json.JSONDecodeError:
        return (done.stderr.strip().splitlines() or ["no answer"])[-1]
    except (ValueError, KeyError) as wrong:
        return str(wrong)


def verdict(pins: Mapping[str, Pin], known: list[str] | str, *, strict: bool) -> tuple[int, str]:
    """The exit code, and all that there is to say."""
    faults = list(faults_of(pins))
    lines = faults or [f"pinned: {len(pins)} packages, each file with its hash"]
    if isinstance(known, str):
        lines.append(f"NOT CHECKED for known vulnerabilities: the index does not tell ({known})")
    else:
        lines += known or ["no known vulnerability"]
    bad = bool(faults) or (strict if isinstance(known, str) else bool(known))
    return (1 if bad else 0), "\n".join(lines)


def main() -> int:
    code, said = verdict(locked(), asked(), strict=os.environ.get("AUDIT") == "strict")
    print(said)
    return code


if __name__ == "__main__":
    sys.exit(main())
