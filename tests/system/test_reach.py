"""What a task of the installed program can reach of the process that runs it (trust model)."""

import base64
import json
from pathlib import Path

import pytest
from tests.system.program import noetl

KEY = base64.b64encode(b"planted-master-key-of-32-bytes!!").decode()
QUEUE = "nats://worker:planted-queue-word@127.0.0.1:1"
PLANTED = {"NOETL_KEY": KEY, "NOETL_QUEUE": QUEUE, "NOETL_TOKEN": "planted-token-of-a-worker"}
ORDINARY = ("setpriv", "--bounding-set", "-all", "--inh-caps", "-all")
"""Root without the powers of root: what other users are to their own processes."""

PLAYBOOK = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {{name: reach, path: tests/reach}}
keychain:
  - {{name: queue, kind: generic, provider: environment, key: NOETL_QUEUE}}
  - {{name: key, kind: generic, provider: file, key: {home}/key}}
workflow:
  - step: start
    tool:
      - look: {look}
"""
ENVIRONMENTS = r"""
import os
result = {"read": 0, "found": []}
for pid in filter(str.isdigit, os.listdir("/proc")):
    for name in ("environ", "mem"):
        try:
            with open(f"/proc/{pid}/{name}", "rb") as file:
                found = file.read(1 << 20) if name == "environ" else b""
                result["read"] += int(pid) == os.getppid()
        except OSError:
            continue
        if b"planted" in found:
            result["found"].append(pid)
"""
"""Of every process that is seen; the parent is the worker where there are no namespaces."""


def asked(folder: Path, look: object, **environment: str) -> dict[str, object]:
    home, file = folder / "home", folder / "books" / "playbook.yaml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(PLAYBOOK.format(home=home, look=json.dumps(look)))
    given = {"NOETL_HOME": str(home), **PLANTED, **environment}
    words = ("env", *(f"{name}={value}" for name, value in given.items()))
    (answer,) = noetl("run", file, "--json", before=(*ORDINARY, *words)).objects()
    assert "planted" not in json.dumps(answer)
    return answer


@pytest.mark.parametrize("namespaces", ["off", "auto"])
def test_no_task_reads_the_environment_or_memory_of_its_worker(
    tmp_path: Path, namespaces: str
) -> None:
    look = {"kind": "python", "code": ENVIRONMENTS}
    answer = asked(tmp_path, look, NOETL_NAMESPACES=namespaces)
    assert answer["result"] == {"read": 0, "found": []}, answer


@pytest.mark.parametrize("auth", ["queue", "key"])
def test_no_keychain_entry_leads_to_settings_or_files_of_noetl(tmp_path: Path, auth: str) -> None:
    look = {"kind": "http", "url": "http://127.0.0.1:1/", "auth": auth}
    answer = asked(tmp_path, look)
    assert "of NoETL itself" in str(answer["error"]), answer


def test_what_a_task_says_of_our_own_secrets_is_masked(tmp_path: Path) -> None:
    """However it got hold of them."""
    look = {"kind": "python", "code": f"result = ['{KEY}', 'planted-queue-word', '{QUEUE}']"}
    answer = asked(tmp_path, look)
    assert answer["status"] == "completed", answer
