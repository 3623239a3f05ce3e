"""The `secrets` tool: the value of a secret, from whoever keeps it (KEY-3)."""

from typing import Any

from noetl.kinds.secrets import SecretsInputs
from noetl.messages.outcome import Outcome, ok
from noetl.tools.frame import FramedTool
from noetl.tools.tool import ToolCall, Workplace


class SecretsTool(FramedTool):
    """It asks the worker's keychain; the result is sealed before anybody else sees it."""

    async def _run(self, call: ToolCall[SecretsInputs], workplace: Workplace) -> Outcome:
        inputs = call.inputs
        return ok(await workplace.secret(inputs.provider, inputs.name, inputs.auth))

    def _block(self, call: ToolCall[SecretsInputs]) -> dict[str, Any]:
        return {"provider": call.inputs.provider, "name": call.inputs.name}
