"""One peer at one work: a process of its own, a bound on its time, one line of JSON."""

import json
import os
import selectors
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import monotonic, perf_counter
from typing import Any

from bench.peers.environments import ROOT, NotThere, python_of
from bench.peers.registry import WORKS, Peer, Result, Work, reason_without
from bench.peers.services import Service, end, serving

GRACE = 60.0
"""Seconds for loading and setting up, beside the bound of the work itself."""


def results_of(peer: Peer, works: list[str]) -> Iterator[Result]:
    """Each in a fresh folder, with a fresh service: no work pays for what another left."""
    try:
        python = python_of(peer)
    except NotThere as lack:
        yield from (told(peer, WORKS[work], reason=str(lack)) for work in works)
        return
    memory = "W6" in works
    for name in works:
        if name == "W6":
            continue
        reason = reason_without(peer, name)
        if reason is not None:
            yield told(peer, WORKS[name], reason=reason)
            continue
        yield from measured(peer, WORKS[name], python, with_memory=memory and name in ("W1", "W4"))
        memory = memory and name not in ("W1", "W4")


def told(peer: Peer, work: Work, **found: Any) -> Result:
    return Result(
        peer=peer.name,
        title=peer.title,
        work=work.name,
        unit=work.unit,
        durable=peer.durable,
        isolated=peer.isolated,
        **found,
    )


def measured(peer: Peer, work: Work, python: Path, *, with_memory: bool) -> Iterator[Result]:
    with tempfile.TemporaryDirectory(prefix="noetl-peers-", ignore_cleanup_errors=True) as place:
        try:
            with serving(peer.service, python, Path(place)) as service:
                found, memory = asked(peer, work, python, service, place)
        except NotThere as lack:
            found, memory = {"reason": str(lack)}, 0.0
    if "reason" in found:
        yield told(peer, work, reason=found["reason"])
    else:
        value = work.value(found["seconds"], found["done"])
        yield told(peer, work, value=value, note=note_of(peer, work, found))
    if with_memory and memory:
        yield told(peer, WORKS["W6"], value=memory)


def note_of(peer: Peer, work: Work, found: dict[str, Any]) -> str:
    notes = []
    if found.get("bounded"):
        notes.append(f"{found['done']:,} of it in {found['seconds']:.0f} s, then stopped")
    if "blocked" in found and found["blocked"] != work.count:
        notes.append(f"beside {found['blocked']:,} blocked: more were not begun in time")
    if work.name == "W5" and peer.service:
        notes.append("its server runs already")
    return "; ".join(notes)


def asked(
    peer: Peer, work: Work, python: Path, service: Service, place: str
) -> tuple[dict[str, Any], float]:
    """What its program says, and the megabytes of all its processes at that moment."""
    address = peer.address or service.address
    words = [work.name, str(work.count), place, address, str(work.bound)]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    with (Path(place) / "errors").open("wb") as errors:
        began = perf_counter()
        process = subprocess.Popen(
            [python, "-m", peer.module, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            cwd=ROOT,
            env={**environment, **service.variables},
            start_new_session=True,
        )
    try:
        found = line_of(process, GRACE + work.bound)
        if work.name == "W5" and "seconds" in found:
            found["seconds"] = perf_counter() - began
        memory = resident(process.pid) + (resident(service.pid) if service.pid else 0.0)
    finally:
        end(process)
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
    if not found:
        said = (Path(place) / "errors").read_text("utf-8", "replace").strip().splitlines()
        found = {"reason": f"it failed: {said[-1][:200]}" if said else "it ended without a figure"}
    return found, memory


def line_of(process: subprocess.Popen[bytes], patience: float) -> dict[str, Any]:
    """The first line that is a JSON object; empty if it ends before."""
    assert process.stdout is not None
    until = monotonic() + patience
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        pending = b""
        while (left := until - monotonic()) > 0:
            if not selector.select(left):
                continue
            piece = os.read(process.stdout.fileno(), 65536)
            if not piece:
                return {}
            pending += piece
            *lines, pending = pending.split(b"\n")
            for line in lines:
                if line.startswith(b"{"):
                    return dict(json.loads(line))
    return {"reason": f"no answer within {patience:.0f} s"}


def resident(root: int) -> float:
    """Megabytes of a process and of all below it."""
    below: dict[int, list[int]] = {}
    pages: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            pages[int(entry.name)] = int((entry / "statm").read_text().split()[1])
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, IndexError):
            continue
        below.setdefault(parent, []).append(int(entry.name))
    total, waiting = 0, [root]
    while waiting:
        pid = waiting.pop()
        total += pages.get(pid, 0)
        waiting += below.get(pid, [])
    return total * os.sysconf("SC_PAGESIZE") / 1e6
