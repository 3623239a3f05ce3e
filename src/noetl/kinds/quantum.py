"""The kind that runs circuits on a quantum provider (TOOL-4)."""

from typing import Annotated, Any, Literal

from msgspec import Meta, field

from noetl.kinds.fields import Auth
from noetl.kinds.kind import Inputs, Kind


class QuantumInputs(Inputs, frozen=True, kw_only=True):
    """Submit, poll, fetch and cancel are operations of their own, so that policies can poll."""

    operation: Annotated[
        Literal["submit", "poll", "fetch", "cancel"], Meta(description="What to do.")
    ]
    provider: Annotated[str, Meta(description="Who runs the circuit.")] = "aer"
    backend: Annotated[str | None, Meta(description="Machine or simulator to use.")] = None
    circuit: Annotated[str | None, Meta(description="The circuit in OpenQASM 2 or 3.")] = None
    parameters: Annotated[
        dict[str, Any], Meta(description="Values of the circuit's parameters, by name.")
    ] = field(default_factory=dict)
    shots: Annotated[int, Meta(description="How often the circuit is run.", ge=1)] = 1024
    seed: Annotated[int | None, Meta(description="Seed, for a result that repeats.")] = None
    job: Annotated[str | None, Meta(description="The submitted job to poll, fetch or cancel.")] = (
        None
    )
    auth: Auth = None


QUANTUM = Kind(
    name="quantum",
    inputs=QuantumInputs,
    summary="Run a circuit on a quantum provider.",
    block="quantum",
    extra="quantum",
)
