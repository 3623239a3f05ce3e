"""Runs an example together with the services that it needs: `python examples/run.py 06-retry`."""

import importlib.util
import json
import os
import subprocess
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
NOETL = Path(sys.executable).with_name("noetl")
USAGE = 3


def services_of(example: Path) -> AbstractContextManager[dict[str, Any]]:
    """What `serve.py` of the example starts; nothing where there is none."""
    if not (example / "serve.py").exists():
        return nullcontext({})
    # The servers are those that the tests use.
    sys.path.insert(0, str(FOLDER.parent))
    spec = importlib.util.spec_from_file_location("serve", example / "serve.py")
    assert spec is not None
    assert spec.loader is not None
    serve = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(serve)
    services: AbstractContextManager[dict[str, Any]] = serve.services()
    return services


def run(example: Path, options: list[str]) -> int:
    """Start the services, run the playbook on them, stop them; the answer is noetl's exit code."""
    with services_of(example) as services:
        settings = [
            word
            for name, value in services.get("workload", {}).items()
            for word in ("--set", f"{name}={json.dumps(value)}")
        ]
        command = [str(NOETL), "run", str(example / "playbook.yaml"), *settings, *options]
        environment = {**os.environ, **services.get("environment", {})}
        return subprocess.run(command, env=environment, check=False).returncode


def main(words: list[str]) -> int:
    """The first word names the example; the others are options of `noetl run`."""
    names = sorted(path.parent.name for path in FOLDER.glob("*/playbook.yaml"))
    if not words or words[0] not in names:
        print("usage: python examples/run.py NAME [OPTIONS OF noetl run]", file=sys.stderr)
        print(f"NAME is one of: {', '.join(names)}", file=sys.stderr)
        return USAGE
    try:
        return run(FOLDER / words[0], words[1:])
    except ModuleNotFoundError as missing:
        print(f"its services need the package {missing.name}: run `make setup`", file=sys.stderr)
        return USAGE


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
