"""The kind that runs circuits on a quantum provider (TOOL-4)."""

from typing import Annotated, Any, Literal

from noetl.kinds.fields import Auth, doc
from noetl.kinds.kind import Inputs, Kind


class QuantumInputs(Inputs, frozen=True, kw_only=True):
    """Submit, poll, fetch and cancel are operations of their own, so that policies can poll."""

    operation: Annotated[Literal["submit", "poll", "fetch", "cancel"], doc("What to do.")]
    provider: Annotated[str, doc("Who runs the circuit.")] = "aer"
    backend: Annotated[str | None, doc("Machine or simulator to use.")] = None
    circuit: Annotated[str | None, doc("The circuit in OpenQASM 2 or 3.")] = None
    parameters: Annotated[dict[str, Any], doc("Values of the circuit's parameters, by name.")] = {}
    shots: Annotated[int, doc("How often the circuit is run.", ge=1)] = 1024
    seed: Annotated[int | None, doc("Seed, for a result that repeats.")] = None
    job: Annotated[str | None, doc("The submitted job to poll, fetch or cancel.")] = None
    auth: Auth = None


QUANTUM = Kind(
    "quantum",
    QuantumInputs,
    "Run a circuit on a quantum provider.",
    block="quantum",
    tells=(
        *("operation", "provider", "job", "status", "backend", "circuit"),
        *("parameters", "shots", "seed", "versions", "digest"),
    ),
    knobs=("resources",),
    needs={"submit": ("circuit",), **dict.fromkeys(("poll", "fetch", "cancel"), ("job",))},
    extra="quantum",
)
