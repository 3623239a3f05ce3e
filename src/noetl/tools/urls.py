"""Whether a text is the address of a server, before a library is asked to go there."""

import re
from collections.abc import Sequence
from urllib.parse import urlsplit

from noetl.tools.refusal import Refusal

_STRANGE = re.compile(r"[\x00-\x20\x7f\"<>\\^`{|}]")
"""What stands in no URL; libraries read it in different ways, or fall over it."""


def checked_url(text: str, name: str, schemes: Sequence[str]) -> str:
    """The same text. It may hold a password, so that a message never quotes it (KEY-2)."""
    try:
        parts = urlsplit(text)
        whole = bool(parts.hostname) and parts.port != 0 and not _STRANGE.search(text)
    except ValueError:  # a port that is no number, a bracket that is not closed
        whole = False
    if whole and parts.scheme in schemes:
        return text
    known = " or ".join(f"{scheme}://" for scheme in schemes)
    says = f"'{name}' is not a server address; expected {known} with a host, and a port if needed"
    raise Refusal("input", says)
