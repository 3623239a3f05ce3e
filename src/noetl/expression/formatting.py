"""Text made to a pattern (`%`, `format`), its widths foreseen (TPL-5)."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from noetl.expression.evaluation import Evaluation
from noetl.expression.limits import LARGEST_VALUE, fits
from noetl.expression.output import encodable, plain, text
from noetl.late import late

WIDTHS: Final = late(r"[-#0 +]*(\d+|\*)?(?:\.(\d+|\*))?")


def printf(evaluation: Evaluation, template: str, arguments: Any) -> str:
    """`template % arguments`."""
    given: tuple[Any, ...]
    if isinstance(arguments, Mapping):
        arguments = {key: written(evaluation, value) for key, value in arguments.items()}
        given = tuple(arguments.values())
    elif isinstance(arguments, tuple):
        arguments = given = tuple(written(evaluation, value) for value in arguments)
    else:
        arguments = written(evaluation, arguments)
        given = (arguments,)
    largest = max((len(text(evaluation, argument)) for argument in given), default=0)
    numbers = [abs(argument) for argument in given if isinstance(argument, int)]
    total = len(template)
    for figure in widths(template):
        total += largest
        if figure == "*":
            total += max(numbers, default=0)
        elif figure:
            total += int(figure) if len(figure) < 9 else LARGEST_VALUE + 1
        fits(total, "formatted text")
    evaluation.charge_text(template)
    return encodable(str(template % arguments))


def written(evaluation: Evaluation, value: Any) -> Any:
    """A lazy becomes a list, so that no text shows an address in memory; text stays as it is."""
    if isinstance(value, str):
        return value
    return plain(evaluation, evaluation.whole(value), tuples=True)


def widths(template: str) -> Iterator[str]:
    """The width and the precision of each `%…`; a name in brackets may hold brackets itself."""
    at = template.find("%")
    while at >= 0:
        at += 1
        if template.startswith("(", at):
            depth = 1
            while depth and at + 1 < len(template):
                at += 1
                depth += {"(": 1, ")": -1}.get(template[at], 0)
            at += 1
        found = WIDTHS.match(template, at)
        if found is None:  # never: the pattern may be empty
            return
        yield from (found[1] or "", found[2] or "")
        at = template.find("%", max(found.end(), at))


def formatted(evaluation: Evaluation, template: str, args: Any, kwargs: Any) -> str:
    from noetl.expression.sandbox import BoundedFormatter  # with all of Jinja2's sandbox

    return encodable(BoundedFormatter(evaluation).vformat(template, args, kwargs))


def format_map(evaluation: Evaluation, template: str, mapping: Any) -> str:
    return formatted(evaluation, template, (), evaluation.body(mapping))
