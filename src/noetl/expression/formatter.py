"""`str.format` as a template may use it (TPL-5)."""

from typing import Any

from jinja2.sandbox import SandboxedFormatter

from noetl.expression.evaluation import Evaluation
from noetl.expression.limits import LARGEST_VALUE, fits
from noetl.expression.output import plain


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
