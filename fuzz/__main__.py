"""`python -m fuzz --runs 2000 --seed 1`: chance against the parser, the templates and the queue."""

import argparse
import sys
import traceback
from importlib import import_module
from pathlib import Path
from random import Random

from bench.generate import generate

from fuzz.fuzz_playbook import check_input
from fuzz.fuzz_signing import CORPUS
from fuzz.mutate import spoilt

ROOT = Path(__file__).parent.parent
PLAYBOOKS = ("examples/*/playbook.yaml", "tests/conformance/playbooks/**/*.yaml")
TEMPLATES: tuple[bytes, ...] = (
    b"\x01{{ workload.items | map('string') | join(', ') }}",
    b"\x01{{ outcome.status == 'error' and outcome.http.status in [429, 500] }}",
    b"\x01{% for row in ctx.deep.list %}{{ loop.index }}: {{ row[0] }}\n{% endfor %}",
    b"\x01{{ {'a': [1, 2, {'b': args.greeting[1:3]}]} if ctx.rows > 2 else none }}",
    b"\x01{% macro m(x) %}{{ x * 2 }}{% endmacro %}{{ m(ctx.rows) ~ ' rows' }}",
    b"\x01{% set ns = namespace(sum=0) %}{% for i in range(9) %}{% set ns.sum = i %}{% endfor %}",
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("--runs", type=int, default=2_000, help="how many inputs (2000)")
    parser.add_argument("--seed", type=int, default=1, help="the same seed, the same inputs (1)")
    parser.add_argument("--atheris", action="store_true", help="guided by coverage, with atheris")
    options = parser.parse_args()
    if options.atheris:
        return guided()
    return by_chance(options.runs, options.seed)


def seeds() -> list[bytes]:
    playbooks = [path.read_bytes() for pattern in PLAYBOOKS for path in sorted(ROOT.glob(pattern))]
    return [*playbooks, generate(90).encode(), *TEMPLATES, *CORPUS]


def by_chance(runs: int, seed: int) -> int:
    """Run so many inputs; show the first input of each way in which the promise was broken."""
    known = seeds()
    broken: dict[str, str] = {}
    for run in range(runs):
        content = spoilt(Random(f"{seed}.{run}"), known)
        try:
            check_input(content)
        except Exception as fault:
            where = traceback.extract_tb(fault.__traceback__)[-1]
            words = "".join(traceback.format_exception(fault))
            shown = f"{words}run {run} of seed {seed} failed with this input:\n{content!r}\n"
            broken.setdefault(f"{type(fault).__name__} {where.filename}:{where.lineno}", shown)
    for shown in broken.values():
        print(shown)
    verdict = f"{len(broken)} kinds of fault" if broken else "each gave a clear answer"
    print(f"{runs} inputs of seed {seed}: {verdict}")
    return 1 if broken else 0


def guided() -> int:
    try:
        atheris = import_module("atheris")
    except ImportError:
        print("atheris is not installed: pip install atheris, or leave out --atheris")
        return 3
    atheris.instrument_all()
    atheris.Setup([sys.argv[0]], check_input)
    atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main())
