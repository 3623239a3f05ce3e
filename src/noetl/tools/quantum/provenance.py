"""What makes a result of chance worth something: how it came about (TOOL-4)."""

import hashlib
from typing import Any

import msgspec

from noetl.kinds.quantum import QuantumInputs
from noetl.tools.quantum.provider import Accepted


class Provenance(msgspec.Struct, frozen=True, kw_only=True):
    """Of one job, from its submission on."""

    execution_id: str
    provider: str
    circuit: str
    parameters: dict[str, Any]
    backend: str
    shots: int
    seed: int
    versions: dict[str, str]

    @property
    def digest(self) -> str:
        """The same for the same experiment: circuit, parameters, backend, shots and seed."""
        what = [self.provider, self.circuit, self.parameters, self.backend, self.shots, self.seed]
        return f"sha256:{hashlib.sha256(msgspec.json.encode(what, order='sorted')).hexdigest()}"


def provenance_of(
    inputs: QuantumInputs, execution_id: str, seed: int, accepted: Accepted
) -> Provenance:
    return Provenance(
        execution_id=execution_id,
        provider=inputs.provider,
        circuit=inputs.circuit or "",
        parameters=inputs.parameters,
        backend=accepted.backend,
        shots=inputs.shots,
        seed=seed,
        versions=accepted.versions,
    )


def block_of(
    inputs: QuantumInputs, job: str | None, status: str | None, known: Provenance | None
) -> dict[str, Any]:
    """
    `outcome.quantum` (OUT-2): every field in every outcome, null where it is not known. The text
    of the circuit is there once for the submission and once for the counts, not for each poll.
    """
    whole = inputs.operation in ("submit", "fetch")
    return {
        "operation": inputs.operation,
        "provider": inputs.provider,
        "job": job,
        "status": status,
        "backend": known.backend if known else inputs.backend,
        "circuit": known.circuit if known and whole else None,
        "parameters": known.parameters if known else None,
        "shots": known.shots if known else None,
        "seed": known.seed if known else None,
        "versions": known.versions if known else None,
        "digest": known.digest if known else None,
    }
