"""`python -m tests.histories --write NAME`: keep logs of the present code as NAME.jsonl."""

import argparse
import sys
from pathlib import Path

import msgspec
from tests.histories.written import WRITTEN, kept


def main() -> int:
    asked = argparse.ArgumentParser(prog="python -m tests.histories")
    asked.add_argument("--write", metavar="NAME", required=True)
    file = Path(__file__).parent / f"{asked.parse_args().write}.jsonl"
    if file.exists():
        print(f"{file} is there: what a release wrote is never written again")
        return 1
    lines = [line for name, made in WRITTEN.items() for line in kept(name, made())]
    file.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
    print(f"{file}: {len(lines)} executions, {file.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
