"""The isolation of tasks in a container, as `deploy/compose.yaml` starts a worker."""

import base64
import json
import os
import sys
from pathlib import Path
from typing import Any

import yaml
from tests.house.tree import ROOT
from tests.support.podman import Podman

COMPOSE = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text("utf-8"))
WORKER: dict[str, Any] = COMPOSE["services"]["worker"]
KEY = base64.b64encode(b"planted-master-key-of-32-bytes!!").decode()
KEPT = {
    "policy": {
        "rules": [
            {"else": {"then": {"do": "continue", "set_ctx": {"seen": "{{ outcome.result }}"}}}}
        ]
    }
}
PYTHON = """
import os, subprocess
result = {}
for path in [f"/proc/{os.getppid()}/environ", "/run/secrets/key", "/var/lib/noetl/noetl.db"]:
    try:
        result[path.rpartition("/")[2]] = open(path, "rb").read().decode("latin-1")
    except OSError as fault:
        result[path.rpartition("/")[2]] = fault.strerror
try:
    os.kill(os.getppid(), 0)
except OSError as fault:
    result["signal"] = fault.strerror
command = "cat /run/secrets/key; grep -l planted /proc/*/environ; ls /var/lib/noetl; echo mine"
result["shell"] = subprocess.run(command, shell=True, capture_output=True, text=True).stdout
"""
SHELL = "cat /run/secrets/key; ls /var/lib/noetl; echo mine > x; cat x"
PLAYBOOK = {
    "apiVersion": "noetl.io/v2",
    "kind": "Playbook",
    "metadata": {"name": "reach", "path": "tests/reach"},
    "workflow": [
        {
            "step": "start",
            "tool": [
                {"code": {"kind": "python", "code": PYTHON, "spec": KEPT}},
                {"command": {"kind": "shell", "command": SHELL}},
            ],
        }
    ],
}


def started(podman: Podman, folder: Path) -> str:
    """What a run says that is started as the shipped worker is."""
    root, work = folder / "root", folder / "work"
    for name in ("usr", "etc", "proc", "dev", "tmp", "books", "run/secrets", "var/lib/noetl"):
        (root / name).mkdir(parents=True)
    for name in ("bin", "lib", "lib64"):
        (root / name).symlink_to(f"usr/{name}")
    work.mkdir()
    (work / "playbook.yaml").write_text(json.dumps(PLAYBOOK))
    (work / "key").write_text(KEY)
    (work / "key").chmod(0o400)
    os.chown(work / "key", 10001, 10001)
    given = {
        **{name: text for name, text in WORKER["environment"].items() if "CONFIG" not in name},
        "NOETL_HOME": "/var/lib/noetl",
        "NOETL_QUEUE": "nats://worker:planted-queue-word@127.0.0.1:1",
    }
    words = ["--user", "10001:10001", "--network", "none", "--log-driver", "none"]
    words += ["--read-only"] if WORKER["read_only"] else []
    words += [f"--cap-drop={one}" for one in WORKER["cap_drop"]]
    words += [f"--security-opt={one.removesuffix(':true')}" for one in WORKER["security_opt"]]
    for place in (*WORKER["tmpfs"], *WORKER["volumes"]):
        (root / place.strip("/")).chmod(0o1777)  # a volume has the rights of what it covers
        words += ["--tmpfs", place]
    for path in dict.fromkeys(("/usr", "/etc", str(ROOT), sys.prefix, sys.base_prefix)):
        words += ["--volume", f"{path}:{path}:ro"]
    words += ["--volume", f"{work}:/books:ro", "--volume", f"{work / 'key'}:/run/secrets/key:ro"]
    for name, text in given.items():
        words += ["--env", f"{name}={text}"]
    program = (f"{sys.prefix}/bin/noetl", "run", "/books/playbook.yaml", "--json")
    return podman.ask("run", "--rm", *words, "--rootfs", str(root), *program)


def test_a_task_in_a_container_reaches_neither_key_nor_queue(
    podman: Podman, tmp_path: Path
) -> None:
    """A container makes no namespaces, and the shipped worker demands that something holds."""
    assert WORKER["environment"]["NOETL_NAMESPACES"] == "demand"
    said = started(podman, tmp_path)
    answer = json.loads(said)
    assert answer["status"] == "completed", answer
    assert "planted" not in said
    assert KEY not in said
    refused = dict.fromkeys(("environ", "key", "noetl.db"), "Permission denied")
    seen = {**refused, "signal": "Operation not permitted", "shell": "mine\n"}
    assert answer["ctx"]["seen"] == seen
    assert answer["result"]["stdout"] == "mine\n"
