"""How is a plain value written as a YAML scalar?"""

import json
import re
from typing import Any, Final

# Cautious: what is not certainly the same text to every reader of YAML gets quotes.
_SAFE: Final = re.compile(r"[A-Za-z_][\w./+-]*(?: [\w./+-]+)*", re.ASCII)
_WORDS: Final = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})


def spelled(value: Any, style: str = "") -> str:
    """A scalar in one line; text in `style` (a kind of quote) where that can hold it."""
    if not isinstance(value, str):
        return json.dumps(value)
    if style not in ("'", '"') and _SAFE.fullmatch(value) and value.lower() not in _WORDS:
        return value
    single = style == "'" or (style == "" and '"' in value and "'" not in value)
    if single and value.isprintable():
        return "'" + value.replace("'", "''") + "'"
    return json.dumps(value, ensure_ascii=not value.isprintable())


def block_lines(text: str, former: list[str]) -> list[str]:
    """The lines of a block scalar, indented as the former ones were."""
    body = [line for line in former[1:] if line.strip()]
    indent = min((len(line) - len(line.lstrip()) for line in body), default=2)
    lines = text.rstrip("\n").split("\n")
    return [" " * indent + line if line else "" for line in lines]
