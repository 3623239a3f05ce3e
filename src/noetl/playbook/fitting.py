"""Does a plain value fit a type of the tables? And how is either called in a message?"""

from collections.abc import Callable
from typing import Any

from noetl.expression.syntax import is_template
from noetl.playbook.shape import (
    Boolean,
    Choice,
    Either,
    Free,
    FreeList,
    FreeMapping,
    Guard,
    Inside,
    Number,
    Template,
    Text,
    TextList,
    Type,
)
from noetl.playbook.suggest import listed
from noetl.playbook.yaml_text import kind_of

WRONG_TYPE, WRONG_VALUE = "wrong-type", "wrong-value"


def misfit(type_: Type, value: Any) -> str | None:
    """The code of what is wrong with `value`, or None if it fits."""
    return _FITS[type(type_)](type_, value)


def described(type_: Type) -> str:
    """The type in words, for 'expected …'."""
    return _WORDS[type(type_)](type_)


def shown(value: Any) -> str:
    """The value in words, for 'is …': scalars by themselves, the rest by their type."""
    if value == "" or value == []:
        return "empty"
    if isinstance(value, str):
        return repr(value if len(value) <= 40 else value[:37] + "...")
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return f"the number {str(value)[:40]}"
    return kind_of(value)


def _text(type_: Text, value: Any) -> str | None:
    if not isinstance(value, str):
        return WRONG_TYPE
    return None if value.strip() or type_.empty else WRONG_VALUE


def _number(type_: Number, value: Any) -> str | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return WRONG_TYPE
    if type_.whole and value != int(value):
        return WRONG_VALUE
    low = type_.minimum is not None and value < type_.minimum
    high = type_.maximum is not None and value > type_.maximum
    return WRONG_VALUE if low or high else None


def _choice(type_: Choice, value: Any) -> str | None:
    if not isinstance(value, str):
        return WRONG_TYPE
    return None if value in type_.words else WRONG_VALUE


def _text_list(_type: TextList, value: Any) -> str | None:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        return WRONG_TYPE
    return None if value else WRONG_VALUE


def _list(type_: FreeList, value: Any) -> str | None:
    if not isinstance(value, list):
        return WRONG_TYPE
    return None if len(value) >= type_.least else WRONG_VALUE


def _either(type_: Either, value: Any) -> str | None:
    wrong = [misfit(one, value) for one in type_.types]
    if None in wrong:
        return None
    return WRONG_VALUE if WRONG_VALUE in wrong else WRONG_TYPE


def _instance(*types: type) -> Callable[[Any, Any], str | None]:
    return lambda _type, value: None if isinstance(value, types) else WRONG_TYPE


def _template(_type: Template, value: Any) -> str | None:
    if not isinstance(value, str):
        return WRONG_TYPE
    return None if is_template(value) else WRONG_VALUE


_FITS: dict[type, Callable[[Any, Any], str | None]] = {
    Text: _text,
    Number: _number,
    Boolean: _instance(bool),
    Choice: _choice,
    Free: lambda _type, _value: None,
    FreeMapping: _instance(dict),
    FreeList: _list,
    TextList: _text_list,
    Template: _template,
    Guard: lambda _type, _value: None,
    Inside: _instance(dict),
    Either: _either,
}


def _number_words(type_: Number) -> str:
    noun = "a whole number" if type_.whole else "a number"
    if type_.maximum is not None:
        return f"{noun} from {_plain(type_.minimum)} to {_plain(type_.maximum)}"
    return noun if type_.minimum is None else f"{noun} of {_plain(type_.minimum)} or more"


def _plain(number: float | None) -> str:
    """As a person writes it: no exponent before it needs one."""
    assert number is not None, "asked of a bound that is there"
    return str(int(number)) if float(number).is_integer() else f"{number:g}"


def _choice_words(type_: Choice) -> str:
    words = [f"'{word}'" for word in type_.words]
    return listed(words) if len(words) <= 2 else f"one of {listed(words)}"


_WORDS: dict[type, Callable[[Any], str]] = {
    Text: lambda _type: "text",
    Number: _number_words,
    Boolean: lambda _type: "true or false",
    Choice: _choice_words,
    Free: lambda _type: "any value",
    FreeMapping: lambda _type: "a mapping",
    FreeList: lambda type_: f"a list of {type_.of}s" if type_.least else "a list",
    TextList: lambda _type: "a list of names",
    Template: lambda _type: "a template '{{ … }}'",
    Guard: lambda _type: "true, false or one whole '{{ … }}'",
    Inside: lambda _type: "a mapping",
    Either: lambda type_: " or ".join(described(one) for one in type_.types),
}
