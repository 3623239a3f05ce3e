"""What msgspec says of a value that does not fit its type, in the words of playbooks."""

from typing import Final

import msgspec

from noetl.late import late

_SAID = late(r"Expected `([^`]+)`, got `([^`]+)`(?: - at `\$\.?(.*)`)?")
_KEY = late(r"Object (contains unknown|missing required) field `([^`]+)`(?: - at `\$\.?(.*)`)?")
_SAID_OF_KEYS: Final = {"contains unknown": "has no key", "missing required": "lacks the key"}
WORDS: Final = {
    "object": "a mapping",
    "array": "a list",
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "null": "null",
}


def misfit_words(fault: msgspec.ValidationError | str) -> str:
    """`'args' is a whole number, expected a mapping`; anything else as msgspec says it."""
    found = _SAID.fullmatch(str(fault))
    if found is None:
        return _key_words(str(fault))
    expected, got, path = found.groups()
    wanted = [WORDS.get(one, one) for one in expected.split(" | ") if one != "null"]
    where = f"'{path}'" if path else "it"
    return f"{where} is {WORDS.get(got, got)}, expected {' or '.join(wanted)}"


def _key_words(said: str) -> str:
    """`'form.limit' has no key 'typ'`: what msgspec says of keys, in the same words."""
    found = _KEY.fullmatch(said)
    if found is None:
        return said
    how, key, path = found.groups()
    where = f"'{path}'" if path else "it"
    return f"{where} {_SAID_OF_KEYS[how]} '{key}'"
