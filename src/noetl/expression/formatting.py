"""Text made to a pattern (`%`, `format`), its widths foreseen (TPL-5)."""

from collections.abc import Mapping
from string import Formatter
from typing import Any

from jinja2.sandbox import SandboxedFormatter

from noetl.expression.evaluation import Evaluation
from noetl.expression.limits import CHARACTERS_PER_TURN, LARGEST_VALUE, fits, printf_fits
from noetl.expression.output import encodable, plain, text


def printf(evaluation: Evaluation, template: str, arguments: Any) -> str:
    given: Any = arguments
    if isinstance(arguments, Mapping):
        given = tuple(arguments.values())
    elif not isinstance(arguments, tuple):
        given = (arguments,)
    largest = max((len(text(evaluation, argument)) for argument in given), default=0)
    numbers = [argument for argument in given if isinstance(argument, int)]
    printf_fits(template, largest, numbers)
    evaluation.charge(1 + len(template) // CHARACTERS_PER_TURN)
    return encodable(str(template % evaluation.filled(arguments)))


class BoundedFormatter(SandboxedFormatter):
    """`str.format` without private attributes and without huge widths."""

    def __init__(self, evaluation: Evaluation) -> None:
        super().__init__(evaluation)  # type: ignore[arg-type]
        self.evaluation = evaluation
        self.length = 0

    def format_field(self, value: Any, format_spec: str) -> Any:
        value = plain(self.evaluation, self.evaluation.whole(value), tuples=True)
        figures = "".join(sign if sign.isdigit() else " " for sign in format_spec).split()
        for figure in figures:
            fits(int(figure) if len(figure) < 9 else LARGEST_VALUE + 1, "formatted text")
        written = super().format_field(value, format_spec)
        self.evaluation.charge(1)
        self.length = fits(self.length + len(written), "formatted text")
        return written


def formatted(evaluation: Evaluation, template: str, args: Any, kwargs: Any) -> str:
    formatter: Formatter = BoundedFormatter(evaluation)
    return encodable(formatter.vformat(template, args, kwargs))


def format_map(evaluation: Evaluation, template: str, mapping: Any) -> str:
    return formatted(evaluation, template, (), evaluation.body(mapping))
