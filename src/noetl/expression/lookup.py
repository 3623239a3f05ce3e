"""What a name or an attribute means: a key first, then a harmless method (TPL-1, TPL-2)."""

from collections.abc import Mapping
from typing import Any, Final

from jinja2.exceptions import SecurityError
from jinja2.runtime import BlockReference, LoopContext, Macro, TemplateReference, Undefined
from jinja2.utils import Cycler, Joiner, Namespace
from markupsafe import Markup

from noetl.errors import NeedsBody
from noetl.expression.limits import bounded_range
from noetl.expression.missing import Missing, below, joined
from noetl.messages.reference import Reference


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


NAMESPACES: Final = words("workload ctx iter args execution_id _prev _task _attempt outcome event")
SEARCHED: Final = ("args", "ctx", "iter", "workload")  # for an unqualified name, in this order
BODIES: Final = "$bodies"  # the scope's loaded bodies, by the key of their reference

# No clock, no randomness, nothing that reaches outside (TPL-5).
GLOBALS: Final[Mapping[str, Any]] = {
    "range": bounded_range,
    "dict": dict,
    "namespace": Namespace,
    "cycler": Cycler,
    "joiner": Joiner,
}

TEXT_METHODS: Final = words(
    """
    capitalize casefold center count endswith expandtabs find format format_map index
    isalnum isalpha isascii isdecimal isdigit isidentifier islower isnumeric isprintable
    isspace istitle isupper join ljust lower lstrip partition removeprefix removesuffix
    replace rfind rindex rjust rpartition rsplit rstrip split splitlines startswith strip
    swapcase title upper zfill
    """
)
LOOP_NAMES: Final = words(
    """
    index index0 revindex revindex0 first last length depth depth0 previtem nextitem cycle
    changed
    """
)
# The only attributes a template can reach; everything else of Python is undefined to it.
METHODS: Final[dict[type, frozenset[str]]] = {
    str: TEXT_METHODS,
    Markup: TEXT_METHODS - {"format", "format_map"} | {"striptags", "unescape"},
    dict: words("keys values items get copy"),
    list: words("index count copy"),
    tuple: words("index count"),
    range: words("index count start stop step"),
    **dict.fromkeys((int, bool), words("bit_length real imag numerator denominator conjugate")),
    float: words("is_integer real imag conjugate hex as_integer_ratio"),
    LoopContext: LOOP_NAMES,
    Macro: words("name arguments catch_kwargs catch_varargs caller"),
    Cycler: words("current next reset"),
    Joiner: frozenset(),
}
SUBSCRIPTED: Final = (dict, list, tuple, str, range)


def body_of(scope: Mapping[str, Any], value: Any) -> Any:
    """`value` itself, or the body of the reference that it is."""
    while type(value) is Reference:
        bodies = scope.get(BODIES)
        if bodies is None or value.key not in bodies:
            raise NeedsBody(value)
        value = bodies[value.key]
    return value


def member(value: Any, key: Any, scope: Mapping[str, Any], missing: type[Missing]) -> Any:
    """One step of a path, named by its key alone if it leads nowhere."""
    return step("", value, key, scope, missing)


def step(path: str, value: Any, key: Any, scope: Mapping[str, Any], missing: type[Missing]) -> Any:
    if type(value) is Reference:
        value = body_of(scope, value)
    if isinstance(value, Undefined):
        return below(value, key, missing)
    if isinstance(value, SUBSCRIPTED):
        try:
            return value[key]
        except (LookupError, TypeError):
            pass
    if isinstance(key, Undefined):
        str(key)  # a use of it: strict ones raise
    return (
        attribute(path, value, key, missing)
        if isinstance(key, str)
        else missing(name=joined(path, key))
    )


def attribute(path: str, value: Any, name: str, missing: type[Missing]) -> Any:
    """A harmless attribute of `value`, never one of its keys."""
    if name.startswith("__"):
        raise SecurityError(f"access to attribute {name!r} is not allowed")
    names = METHODS.get(type(value))
    if names is not None and name in names:
        return getattr(value, name)
    open_to_all = isinstance(value, Namespace | TemplateReference | BlockReference)
    if open_to_all and not name.startswith("_"):
        try:
            return value[name] if isinstance(value, TemplateReference) else getattr(value, name)
        except (AttributeError, LookupError):
            pass
    if hasattr(type(value), name):  # there, but not for templates: told when it is used
        hint = f"access to attribute {name!r} of {type(value).__name__!r} is not allowed"
        return missing(hint, name=joined(path, name), exc=SecurityError)
    return missing(name=joined(path, name))


def walk(scope: Mapping[str, Any], missing: type[Missing], root: str, keys: tuple[Any, ...]) -> Any:
    """A path from a root of the scope; the slow way, when plain subscripts did not lead through."""
    value = named(scope, missing, root)
    path = root
    for key in keys:
        value = step(path, value, key, scope, missing)
        path = joined(path, key)
    return value


def named(scope: Mapping[str, Any], missing: type[Missing], name: str) -> Any:
    """What a bare name means (TPL-2)."""
    if name in NAMESPACES:
        return scope[name] if name in scope else missing(name=name)
    for namespace in SEARCHED:
        values = scope.get(namespace)
        if type(values) is Reference:
            values = body_of(scope, values)
        if type(values) is dict and name in values:
            return values[name]
    return GLOBALS[name] if name in GLOBALS else missing(name=name)
