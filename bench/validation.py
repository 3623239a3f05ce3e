"""What validating a long playbook costs, beside reading its YAML with the C loader alone."""

import gc
from collections.abc import Callable
from functools import partial
from time import perf_counter

import yaml

from bench.figure import Figure
from bench.generate import generate
from bench.size import sized
from noetl.playbook.load import load

REPEATS = sized(9, small=1)
LINES = sized(5_000)


def figures() -> list[Figure]:
    findings = load(generate(LINES)).findings
    found = [finding for finding in findings if finding.severity == "error"]
    if found:
        raise SystemExit(f"the generated playbook is invalid: {found[0]}")
    ours: list[float] = []
    reference: list[float] = []
    for number in range(REPEATS):
        # Each time another text, so that no cache of templates can answer for the work.
        text = generate(LINES, salt=number + 1)
        ours.append(milliseconds(partial(load, text.encode())))
        reference.append(milliseconds(partial(yaml.compose, text, yaml.CSafeLoader)))
    return [Figure.of("validate 5000 lines / yaml C compose", ours, reference, 6.0, "ms")]


def milliseconds(work: Callable[[], object]) -> float:
    gc.collect()
    start = perf_counter()
    work()
    return 1000 * (perf_counter() - start)
