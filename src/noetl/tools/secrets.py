"""The `secrets` tool: the value of a secret, from whoever keeps it (KEY-3)."""

from noetl.errors import CredentialMissing
from noetl.kinds.secrets import SecretsInputs
from noetl.messages.outcome import Outcome, failed, ok
from noetl.tools.refusal import Refusal, unforeseen
from noetl.tools.tool import ToolCall, Workplace


class SecretsTool:
    """It asks the worker's keychain; the result is sealed before anybody else sees it."""

    async def call(self, call: ToolCall[SecretsInputs], workplace: Workplace) -> Outcome:
        inputs = call.inputs
        block = {"provider": inputs.provider, "name": inputs.name}
        try:
            value = await workplace.secret(inputs.provider, inputs.name, inputs.auth)
        except Refusal as refusal:
            return refusal.outcome
        except CredentialMissing as missing:
            return failed("auth", str(missing), block=block)
        except Exception as fault:
            return unforeseen(fault)
        return ok(value, block=block)

    async def forget(self, scratch: str) -> None:
        """Nothing lives for a step run."""

    async def close(self) -> None:
        """The keychain belongs to the worker."""
