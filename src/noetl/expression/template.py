"""Values with templates inside, compiled once to plain callables (TPL-4)."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from jinja2 import nodes

from noetl.errors import TemplateFault
from noetl.expression.codegen import VISITORS
from noetl.expression.limits import DEEPEST_TEMPLATE
from noetl.expression.syntax import (
    check_guard,
    check_template,
    outputs_of,
    parse,
    texts_of,
    whole_expression,
)
from noetl.expression.writer import PATHS, FunctionWriter
from noetl.late import late

Scope = dict[str, Any]
Evaluate = Callable[[Scope], Any]
PIECE: Final = 200
"""Templates in one function of ours."""


def compile_text(text: str) -> Evaluate:
    """Strict. One whole `{{ … }}` gives its native value, anything else a string (TPL-1)."""
    return compile_value(text)


def check_text(text: str) -> TemplateFault | None:
    """What keeps a template from being compiled, without evaluating it (VAL-2)."""
    if "{%" not in text and (
        len(text) < SURELY_SHALLOW or len(WORDS.findall(text)) < SURELY_SHALLOW
    ):
        return check_template(text)
    try:
        write_value(FunctionWriter(VISITORS, lenient=False), text)
    except TemplateFault as fault:
        return fault
    return None


SURELY_SHALLOW: Final = DEEPEST_TEMPLATE  # as each level takes a word or a sign at least
WORDS: Final = late(r"\w+|[^\w\s]")


def compile_value(value: Any) -> Evaluate:
    """Any JSON value with templates inside, as one callable; its containers come fresh."""
    if not holds_template(value):
        return lambda _: value
    writer = FunctionWriter(VISITORS, lenient=False)
    with writer.under("try:"):
        writer.write(f"return {write_value(writer, value)}")
    writer.write("except Exception as error: raise failure(error, text_now, s)")
    evaluate: Evaluate = writer.function("evaluate")
    return evaluate


def compile_guard(guard: bool | str) -> Callable[[Scope], bool]:
    """A guard: undefined is false, at any depth (TPL-3)."""
    if isinstance(guard, bool):
        return lambda _: guard
    writer = FunctionWriter(VISITORS, lenient=True)
    write_guard(writer, guard, "return True", "return False")
    compiled: Callable[[Scope], bool] = writer.function("guard")
    return compiled


def compile_rules(guards: Sequence[bool | str | None]) -> Callable[[Scope], int]:
    """The index of the first guard that matches (`None` is `else`), -1 if none: one function."""
    if len(guards) > PIECE:
        return compile_pieces(guards)
    writer = FunctionWriter(VISITORS, lenient=True)
    for index, guard in enumerate(guards):
        if guard is None or guard is True:
            writer.write(f"return {index}")
            break
        if guard is not False:
            write_guard(writer, guard, f"return {index}", "pass")
    else:
        writer.write("return -1")
    choose: Callable[[Scope], int] = writer.function("choose")
    return choose


def compile_pieces(guards: Sequence[bool | str | None]) -> Callable[[Scope], int]:
    """The same for more guards than Python compiles in a moment."""
    starts = range(0, len(guards), PIECE)
    pieces = [(start, compile_rules(guards[start : start + PIECE])) for start in starts]

    def choose(scope: Scope) -> int:
        for start, piece in pieces:
            if (found := piece(scope)) >= 0:
                return start + found
        return -1

    return choose


def write_guard(writer: FunctionWriter, guard: str, matched: str, unmatched: str) -> None:
    reason = check_guard(guard)
    expression = whole_expression(parse(guard)) if reason is None else None
    if expression is None:
        raise TemplateFault(reason or "no expression", text=guard)
    before = dict(writer.loaded)
    writer.risky = False
    writer.write("try:")
    writer.depth += 1
    with located(guard):
        writer.write(f"if {writer.touched(expression)}: {matched}")
    if unmatched != "pass":
        writer.write(unmatched)
    writer.depth -= 1
    if writer.risky:  # left in the middle, a guard may not have loaded what it would have
        writer.loaded = before
        writer.write(f"except UndefinedError: {unmatched}")
    writer.write(f"except Exception as error: raise failure(error, {writer.bind(guard)}, s)")


@contextmanager
def located(text: str) -> Iterator[None]:
    """A fault found while writing code carries the template it lies in."""
    try:
        yield
    except TemplateFault as fault:
        raise (
            fault if fault.text else TemplateFault(fault.message, text=text, line=fault.line)
        ) from None
    except RecursionError:
        raise TemplateFault("the template is nested too deeply", text=text) from None


def holds_template(value: Any) -> bool:
    return any(True for _ in texts_of(value))


def write_value(writer: FunctionWriter, value: Any) -> str:
    if not holds_template(value):
        return writer.bind(value)
    if not isinstance(value, str) and len(pieces := pieces_of(value)) > 1:
        stars = "**" if isinstance(value, dict) else "*"
        writer.write("text_now = ''")  # whichever piece fails names its own
        made = ", ".join([f"{stars}{writer.bind(compile_value(piece))}(s)" for piece in pieces])
        return writer.keep(f"{{{made}}}" if isinstance(value, dict) else f"[{made}]")
    if isinstance(value, dict):
        pairs = [f"{key!r}: {write_value(writer, child)}" for key, child in value.items()]
        return writer.keep(f"{{{', '.join(pairs)}}}")
    if isinstance(value, list | tuple):
        return writer.keep(f"[{', '.join([write_value(writer, child) for child in value])}]")
    assert isinstance(value, str)
    with located(value):
        return write_template(writer, value)


def pieces_of(value: Any) -> list[Any]:
    """
    A container in pieces of so many templates. Python compiles one function without letting
    others in: one of thirty thousand templates had stopped a server for longer than a lease.
    """
    named = isinstance(value, dict)
    pieces: list[list[Any]] = [[]]
    found = 0
    for item in value.items() if named else value:
        held = sum(1 for _ in texts_of(item[1] if named else item))
        if found + held > PIECE and pieces[-1]:
            pieces.append([])
            found = 0
        pieces[-1].append(item)
        found += held
    return [dict(piece) for piece in pieces] if named else pieces


def write_template(writer: FunctionWriter, text: str) -> str:
    tree = parse(text)
    writer.write(f"text_now = {writer.bind(text)}")
    parts = outputs_of(tree)
    if parts is None:
        from noetl.expression.statements import compile_statements  # with all of Jinja2

        return writer.keep(f"{writer.bind(compile_statements(text))}(s)")
    expression = whole_expression(tree)
    if expression is not None:
        return write_native(writer, expression)
    pieces = writer.values(parts)
    return writer.keep(f"concatenate({writer.evaluation()}, ({pieces}))")


def write_native(writer: FunctionWriter, expression: nodes.Node) -> str:
    value = writer.value(expression)
    if isinstance(expression, PATHS):
        # A path into the scope: plain already, unless it is undefined or a method.
        writer.write(f"if {value}.__class__ not in PLAIN: {value} = settled(s, {value})")
        return value
    if isinstance(expression, nodes.Const) and not isinstance(expression.value, float):
        return value  # a float may be infinite
    return writer.keep(f"handed_out({writer.evaluation()}, {value})")
