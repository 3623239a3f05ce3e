"""A copy of a live home holds everything: `docs/operate/backup.md`, done as it says."""

import subprocess
import sys
from pathlib import Path

from tests.house.markdown import blocks_of
from tests.system.program import ROOT
from tests.system.running import running
from tests.system.servers import Node, node

PAGE = ROOT / "docs" / "operate" / "backup.md"
HELD = """apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: held, path: tests/held}
workload: {gate: ""}
workflow:
  - step: large
    tool:
      - make:
          kind: python
          code: "result = 'x' * 2000000"
          spec:
            policy:
              rules:
                - else: {then: {do: continue, set_ctx: {text: "{{ outcome.result }}"}}}
    next: {arcs: [{step: wait}]}
  - step: wait
    tool:
      - hold:
          kind: shell
          command: "while [ ! -e {{ workload.gate }} ]; do sleep 0.05; done"
    next: {arcs: [{step: count}]}
  - step: count
    tool:
      - size:
          kind: python
          args: {text: "{{ ctx.text }}"}
          code: "result = len(text)"
"""


def done_as_told(number: int, home: Path, backup: Path, key: Path) -> None:
    """Run a block of the page."""
    text = [block.text for block in blocks_of(PAGE) if block.language == "sh"][number]
    folders = {"NOETL_HOME": str(home), "BACKUP": str(backup), "KEY_BACKUP": str(key)}
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    done = subprocess.run(
        ["sh", "-eu", "-c", text],
        env={**folders, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_copy_of_a_live_home_goes_on_where_it_stands(tmp_path: Path) -> None:
    home, backup, restored = (tmp_path / name for name in ("home", "backup", "restored"))
    gate, apart = tmp_path / "gate", tmp_path / "safe"
    with node(home) as up:
        up.there("register", "-", stdin=HELD.encode())
        up.there("credential", "add", "api", "--kind", "bearer", "--stdin", stdin=b"s3cr3t-9")
        begun = up.there("execute", "tests/held", "--set", f"gate={gate}", "--json")
        execution_id = begun.objects()[0]["execution_id"]
        with running("events", execution_id, "--follow", "--server", up.url, home=home) as follower:
            follower.wait_for("hold")
        (home / "contexts.toml").write_text(
            "[contexts.x]\nserver = 'http://x'\ntoken = 'noetl_t0ken'\n"
        )
        done_as_told(0, home, backup, apart)
        [body] = backup.rglob("*.json")
        assert body.stat().st_size == 2_000_002, "the large value lies outside the log"
        assert up.there("cancel", execution_id).code == 0

    key = (home / "key").read_bytes().strip()
    for file in backup.rglob("*"):
        assert file.stat().st_mode & 0o077 == 0, f"others may read {file}"
        if file.is_file():
            assert key not in file.read_bytes(), "the key is apart from what it opens"
            assert b"noetl_t0ken" not in file.read_bytes()
    assert (apart.stat().st_mode & 0o777, apart.read_bytes().strip()) == (0o600, key)

    done_as_told(1, restored, backup, apart)
    copy = Node(restored)
    assert copy.here("replay", execution_id, "--verify").code == 0
    assert copy.here("credential", "show", "api").code == 0, "the key opens what it sealed"
    gate.touch()
    with node(restored) as up:
        ended = up.there("events", execution_id, "--follow")
        assert ended.code == 0
        [told] = copy.here("status", execution_id, "--json").objects()
    assert told["status"] == "completed"
    assert copy.here("replay", execution_id, "--verify").code == 0
    events = copy.here("events", execution_id, "--json").objects()
    [counted] = [e for e in events if (e["name"], e.get("step")) == ("task.done", "count")]
    assert counted["data"]["outcome"]["result"] == 2_000_000


def test_the_log_is_copied_before_the_results() -> None:
    """A body is there before the event that names it: a later copy of bodies has all of a log."""
    text = next(block.text for block in blocks_of(PAGE) if block.language == "sh")
    assert text.index("vacuum into") < text.index("cp -R")
