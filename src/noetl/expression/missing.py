"""An undefined value: false where it is asked, an error where it is used (TPL-3)."""

from typing import Any

from jinja2.runtime import StrictUndefined, Undefined

# An inline `if` without `else` gives Jinja2's mild undefined: empty in text, and not defined.
NO_ELSE = Undefined("the condition of an inline `if` is false and it has no `else`")


def never(*_: object) -> bool:
    return False


def always(*_: object) -> bool:
    return True


class Missing(StrictUndefined):
    """
    An undefined value: compared or mentioned it is false, any other use is an error that names it.

    So it is an error only where it reaches the output (TPL-3); a guard takes the error for false.
    """

    __slots__ = ()

    __eq__ = __lt__ = __le__ = __gt__ = __ge__ = __contains__ = never  # type: ignore[assignment]
    __ne__ = always  # type: ignore[assignment]
    __bool__ = never  # type: ignore[assignment]
    __hash__ = StrictUndefined.__hash__  # type: ignore[assignment]

    @property
    def path(self) -> str:
        return str(self._undefined_name)

    def used(self) -> Any:
        """Raise the error that names this value."""
        return self._fail_with_undefined_error()


def below(parent: Undefined, key: object, missing: type[Missing]) -> Missing:
    """What lies below an undefined value: undefined too, and named in full."""
    name = parent.path if isinstance(parent, Missing) else str(parent._undefined_name)
    return missing(name=joined(name, key))


def joined(path: str, key: object) -> str:
    """`a`, `b` → `a.b`; `a`, 0 → `a[0]`."""
    if isinstance(key, str) and key.isidentifier():
        return f"{path}.{key}" if path else key
    return f"{path}[{key!r}]"
