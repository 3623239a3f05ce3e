"""One job on Qiskit Aer, in a process of its own: read, wait for its turn, run, write counts."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import qiskit
import qiskit_aer
from qiskit_aer import AerSimulator

from noetl.tools.quantum.inside.reading import Unreadable, read

NAME = "aer_simulator"
Tell = Callable[..., None]


class CircuitRefused(Exception):
    """Aer does not run this; the message says why."""


def simulate(
    order: dict[str, Any], result: Path, tell: Tell, turn: Callable[[], None], printed: Path
) -> None:
    """Tells `queued` when the circuit is read, then `running` and `done`, or `failed`."""
    try:
        circuit = read(order["circuit"], order["version"], lambda: text_in(printed))
        backend = simulator(order)
        if not circuit.num_clbits:
            raise CircuitRefused("the circuit measures nothing; add a 'measure' to have counts")
        prepared = qiskit.transpile(circuit, backend, seed_transpiler=order["seed"])
        versions = {"qiskit": qiskit.__version__, "qiskit-aer": qiskit_aer.__version__}
        method = backend.options.method
        tell(status="queued", backend=NAME if method == "automatic" else method, versions=versions)
        turn()
        tell(status="running")
        result.write_text(json.dumps(run(backend, prepared, order)))
        tell(status="done")
    except Unreadable as fault:
        tell(status="failed", message=str(fault), line=fault.line, column=fault.column)
    except (CircuitRefused, qiskit.exceptions.QiskitError, MemoryError) as fault:
        tell(status="failed", message=sentence(fault))


def simulator(order: dict[str, Any]) -> Any:
    """A method of Aer by its name, such as `statevector`."""
    method = (order["backend"] or NAME).removeprefix(f"{NAME}_")
    known = [one for one in AerSimulator().available_methods() if one != "automatic"]
    if method not in (NAME, "automatic", *known):
        raise CircuitRefused(f"aer has no backend '{method}'; it has {NAME}, {', '.join(known)}")
    return AerSimulator(
        method="automatic" if method == NAME else method,
        max_parallel_threads=order["cpu"],
        max_memory_mb=max(1, order["memory"] // 2**20),
    )


def run(backend: Any, circuit: Any, order: dict[str, Any]) -> dict[str, int]:
    outcome = backend.run(circuit, shots=order["shots"], seed_simulator=order["seed"]).result()
    if not outcome.success:
        status = outcome.results[0].status if outcome.results else outcome.status
        raise CircuitRefused(f"Aer says: {status}")
    return {bits: int(count) for bits, count in sorted(outcome.get_counts().items())}


def sentence(fault: BaseException) -> str:
    if isinstance(fault, MemoryError):
        return "the job needs more memory than there is"
    return str(getattr(fault, "message", fault))  # Qiskit's own text is the message in quotes


def text_in(file: Path) -> str:
    return file.read_text("utf-8", "replace") if os.path.getsize(file) < 1_000_000 else ""
