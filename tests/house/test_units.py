"""The units of systemd: what they must hold, and what systemd itself says of them."""

import configparser
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.house.tree import ROOT

from noetl.api.serve import GRACE as REQUESTS_END
from noetl.cli.background.crew import GRACE as CREW_ENDS
from noetl.settings import Settings
from noetl.worker.work_loop import LAST_WORDS

DRAIN = Settings(home=ROOT).drain
UNITS = sorted((ROOT / "deploy" / "systemd").iterdir())
NEEDED = {
    "NoNewPrivileges": "yes",
    "ProtectSystem": "strict",
    "ProtectHome": "yes",
    "KillMode": "mixed",
    "Restart": "always",
    "UMask": "0077",
}
SPOIL_NAMESPACES = {
    *("RestrictNamespaces", "ProtectProc", "ProcSubset"),
    *("ProtectKernelTunables", "ProtectKernelLogs", "SystemCallFilter"),
}


class Keys(dict[str, Any]):
    """Keys of units may come twice: all of their values, one a line."""

    def __setitem__(self, key: str, value: Any) -> None:
        if isinstance(value, list) and key in self:
            value = [*self[key], *value]
        super().__setitem__(key, value)


def unit(path: Path) -> configparser.RawConfigParser:
    reader = configparser.RawConfigParser(dict_type=Keys, strict=False, delimiters=("=",))
    reader.optionxform = str  # type: ignore[assignment, method-assign]
    reader.read_string(path.read_text("utf-8"))
    return reader


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_a_unit_has_what_it_needs(path: Path) -> None:
    read = unit(path)
    assert read.sections() == ["Unit", "Service", "Install"]
    service = dict(read["Service"])
    assert {key: service[key] for key in NEEDED} == NEEDED
    assert service["User"] != "root"
    assert service["CapabilityBoundingSet"] == ""
    assert service["ExecStart"].endswith(" start --foreground")
    assert "EnvironmentFile" in service
    assert {"MemoryMax", "TasksMax", "StateDirectory"} <= set(service)


def test_units_wait_for_what_stops() -> None:
    wait = {path.name: int(unit(path)["Service"]["TimeoutStopSec"]) for path in UNITS}
    assert wait["noetl-worker@.service"] > DRAIN + 2 * LAST_WORDS
    assert wait["noetl-server.service"] > DRAIN + CREW_ENDS + REQUESTS_END


def test_nothing_keeps_the_children_of_a_worker_from_their_namespaces() -> None:
    worker = unit(ROOT / "deploy" / "systemd" / "noetl-worker@.service")
    assert SPOIL_NAMESPACES & set(worker["Service"]) == set()


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_systemd_takes_it(path: Path, tmp_path: Path) -> None:
    """Where systemd is there, it is asked; its program must exist, so another stands in."""
    text = path.read_text("utf-8").replace("/opt/noetl/bin/noetl", sys.executable)
    assert sys.executable in text
    (tmp_path / path.name).write_text(text)
    program = shutil.which("systemd-analyze")
    if program is not None:
        words = [program, "verify", str(tmp_path / path.name)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
