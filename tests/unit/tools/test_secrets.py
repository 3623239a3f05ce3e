"""The `secrets` tool: a sealed value, or an outcome that says why not."""

import asyncio
from typing import Any

import pytest
from tests.support.workplace import BenchPlace, call_of

from noetl.errors import CredentialMissing
from noetl.kinds.secrets import SecretsInputs
from noetl.messages.outcome import Outcome
from noetl.messages.reference import Reference
from noetl.tools.refusal import Refusal
from noetl.tools.secrets import SecretsTool


def ask(place: BenchPlace, **inputs: Any) -> Outcome:
    async def run() -> Outcome:
        tool = SecretsTool()
        try:
            outcome = await tool.call(call_of(SecretsInputs(**inputs)), place)
            await tool.forget("s1")
            return outcome
        finally:
            await tool.close()

    return asyncio.run(run())


def test_the_result_is_sealed() -> None:
    outcome = ask(BenchPlace(api={"token": "t"}), name="api")
    assert outcome.status == "ok"
    assert isinstance(outcome.result, Reference)
    assert outcome.result.sealed is not None
    assert outcome.block == {"provider": "store", "name": "api"}


class Refusing(BenchPlace):
    """A workplace whose keychain does not do what is asked."""

    def __init__(self, fault: Exception) -> None:
        super().__init__()
        self._fault = fault

    async def secret(self, provider: str, name: str, auth: str | None) -> Reference:
        assert (provider, name, auth) == ("vault", "a/b", "door")
        raise self._fault


@pytest.mark.parametrize(
    ("fault", "kind", "retryable"),
    [
        (CredentialMissing("no such secret"), "auth", False),
        (Refusal("connection", "not there", retryable=True), "connection", True),
        (ValueError("a mistake"), "internal", False),
    ],
)
def test_what_goes_wrong_is_an_outcome(fault: Exception, kind: str, retryable: bool) -> None:
    outcome = ask(Refusing(fault), provider="vault", name="a/b", auth="door")
    assert outcome.status == "error"
    assert outcome.error is not None
    assert (outcome.error["kind"], outcome.error["retryable"]) == (kind, retryable)
