"""Makes names for addresses out of titles, for tasks of kind `slugify`."""

import re
import unicodedata
from typing import Annotated, Any

from msgspec import Meta

from noetl.kinds.kind import Inputs, Kind
from noetl.messages.outcome import Outcome, failed, ok
from noetl.tools.plugins import Plugin
from noetl.tools.tool import ToolCall, Workplace


class SlugifyInputs(Inputs, frozen=True, kw_only=True):
    """What a task gives. The types are checked by `noetl validate`, and again after rendering."""

    title: Annotated[str, Meta(description="The text to make a name of.")]
    longest: Annotated[int, Meta(description="Characters that the name may have.", ge=1)] = 60


class SlugifyTool:
    """The contract is that of noetl.tools.tool.Tool: one outcome for each call, no exception."""

    async def call(self, call: ToolCall[SlugifyInputs], workplace: Workplace) -> Outcome:
        plain = unicodedata.normalize("NFKD", call.inputs.title)
        words = re.findall("[a-z0-9]+", plain.encode("ascii", "ignore").decode().lower())
        if not words:
            says = f"the title {call.inputs.title!r} has no letter or digit to make a name of"
            return failed("slugify", says, block={"words": 0})
        workplace.log(call, "system", f"{len(words)} words")
        slug = "-".join(words)[: call.inputs.longest].rstrip("-")
        return ok({"slug": slug}, block={"words": len(words)})

    async def forget(self, scratch: Any) -> None:
        """A step run is over: this tool keeps nothing for it."""

    async def close(self) -> None:
        """The worker ends: this tool holds nothing open."""


PLUGIN = Plugin(
    kind=Kind(
        name="slugify",
        inputs=SlugifyInputs,
        summary="Make a name for an address out of a title.",
        block="slugify",
        effect=False,
    ),
    tool=SlugifyTool,
)
