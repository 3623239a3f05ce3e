"""An environment for each peer, made once and kept below `build/peers`."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from bench.peers.registry import Peer

ROOT = Path(__file__).parents[2]
PLACE = ROOT / "build" / "peers"
PATIENCE = 300.0
UV = Path(sys.executable).with_name("uv")


class NotThere(Exception):
    """A peer that cannot be measured here, and why."""


def python_of(peer: Peer) -> Path:
    """Its interpreter, with what is pinned for it; ours is this one."""
    if peer.ours:
        return Path(sys.executable)
    folder = folder_of(peer)
    python = folder / "bin" / "python"
    if is_installed(peer):
        return python
    shutil.rmtree(folder, ignore_errors=True)
    uv("venv", "--python", sys.executable, str(folder))
    uv("pip", "install", "--compile-bytecode", "--python", str(python), *peer.packages)
    (folder / "pinned").write_text(pins_of(peer))
    return python


def folder_of(peer: Peer) -> Path:
    return PLACE / (peer.environment or peer.name)


def pins_of(peer: Peer) -> str:
    return "\n".join(peer.packages)


def is_installed(peer: Peer) -> bool:
    """Whether it is there already, in the versions that are pinned for it."""
    pinned = folder_of(peer) / "pinned"
    return pinned.exists() and pinned.read_text() == pins_of(peer)


def uv(*arguments: str) -> None:
    """Without the pins of this project, which `pyproject.toml` holds for our own packages."""
    command = [str(UV), *arguments, "--no-config", "--quiet"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=PATIENCE, check=False, cwd=os.sep
        )
    except subprocess.TimeoutExpired:
        raise NotThere(f"not installed within {PATIENCE:.0f} s") from None
    if done.returncode:
        said = " ".join(done.stderr.split())
        raise NotThere(f"cannot be installed: {said[:300]}")
