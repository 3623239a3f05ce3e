"""What msgspec says of a value that does not fit its type, in the words of playbooks."""

from typing import Final

import msgspec

from noetl.late import late

_SAID = late(r"Expected `([^`]+)`, got `([^`]+)`(?: - at `\$\.?(.*)`)?")
WORDS: Final = {
    "object": "a mapping",
    "array": "a list",
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "null": "null",
}


def misfit_words(fault: msgspec.ValidationError) -> str:
    """`'args' is a whole number, expected a mapping`; anything else as msgspec says it."""
    found = _SAID.fullmatch(str(fault))
    if found is None:
        return str(fault)
    expected, got, path = found.groups()
    wanted = [WORDS.get(one, one) for one in expected.split(" | ") if one != "null"]
    where = f"'{path}'" if path else "it"
    return f"{where} is {WORDS.get(got, got)}, expected {' or '.join(wanted)}"
