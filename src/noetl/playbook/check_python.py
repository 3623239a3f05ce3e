"""Can the Python code of a playbook run at all? (VAL-8)"""

import ast
import builtins
import symtable
import warnings
from collections.abc import Iterator, Mapping
from typing import Any, Final

from noetl.expression.meant import closest
from noetl.expression.syntax import is_template
from noetl.playbook.check_tasks import tasks_of
from noetl.playbook.model import Playbook, Task
from noetl.playbook.reader import At, Reader
from noetl.playbook.suggest import did_you_mean

LONGEST: Final = 100_000
"""Characters of code in one document that are looked at (DOC-7)."""
MOST_TOLD: Final = 10
_GIVEN: Final = frozenset(
    {*dir(builtins), "__name__", "__doc__", "__builtins__", "__annotations__", "__dict__"}
)
_REACHING: Final = frozenset({"exec", "eval", "globals", "locals", "vars", "__import__"})
"""Who uses these may make names that no reader of the text sees."""
_NAMESPACES: Final = frozenset({"workload", "ctx", "iter", "args", "_prev", "execution_id"})
_IDLE: Final = (*(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom),)
"""Statements that by themselves have no effect worth a task."""
_SOURCE: Final = "<code of a playbook>"
"""What a compiler calls the text; Python's own warnings of it are no business of ours."""


def check_python(reader: Reader, playbook: Playbook) -> None:
    """Code, and scripts in Python where their files can be read: syntax, and names in code."""
    left = LONGEST
    for task in tasks_of(playbook):
        text = task.inputs.get("code")
        left -= len(text) if isinstance(text, str) else 0
        if left < 0:
            return
        if task.kind == "python" and isinstance(text, str) and not is_template(text):
            at = reader.input_at(task.place.path, "code")
            read = _parsed(reader, at, text, inside=True)
            if read is not None:
                _check_names(reader, at, task, text, *read)
        elif task.kind == "script":
            _check_script(reader, task)


def _check_script(reader: Reader, task: Task) -> None:
    path, text = task.inputs.get("path"), task.inputs.get("code")
    by = task.inputs.get("interpreter")
    program = by[0] if isinstance(by, list) and by else by
    named = isinstance(program, str) and program.rpartition("/")[2].startswith("python")
    if isinstance(text, str) and not is_template(text):
        first = text.partition("\n")[0]
        if named or (first.startswith("#!") and "python" in first):
            _parsed(reader, reader.input_at(task.place.path, "code"), text, inside=True)
    elif isinstance(path, str) and not is_template(path):
        ours = named or (program is None and path.endswith(".py"))
        found = reader.neighbours.file(path) if ours else None
        if found is not None:
            _parsed(reader, reader.input_at(task.place.path, "path"), found, inside=False)


def _parsed(
    reader: Reader, at: At, text: str, *, inside: bool
) -> tuple[ast.Module, symtable.SymbolTable] | None:
    """The tree and the names of a code; None where it has none, which is told, or is too much."""
    if len(text) > LONGEST:
        return None
    try:
        _be_quiet()
        compile(text, _SOURCE, "exec", dont_inherit=True)
        return ast.parse(text, _SOURCE), symtable.symtable(text, _SOURCE, "exec")
    except SyntaxError as wrong:
        line, column = max(0, (wrong.lineno or 1) - 1), max(0, (wrong.offset or 1) - 1)
        said = f"the code is not Python: {wrong.msg}"
        if inside:
            reader.report_inside("code-syntax", at, (line, column), said, _remedy(wrong))
        else:
            where = f"line {line + 1} of '{reader.value(at)}'"
            reader.report("code-syntax", at, f"{said} ({where})", _remedy(wrong))
    except (ValueError, RecursionError, MemoryError, OverflowError):
        pass  # what cannot be judged here is judged where it runs
    return None


def _be_quiet() -> None:
    """Once for all threads: what is set for a moment would be set for the others too."""
    if not any(getattr(one[3], "pattern", "") == _SOURCE for one in warnings.filters):
        warnings.filterwarnings("ignore", module=_SOURCE)


def _remedy(wrong: SyntaxError) -> str:
    if wrong.msg.startswith("'return' outside"):
        return "set `result = …`, or put the code into def main(…): and return there"
    if isinstance(wrong, IndentationError):
        return "indent the lines of one block alike"
    return "correct this line, or the one above it"


def _check_names(
    reader: Reader,
    at: At,
    task: Task,
    text: str,
    tree: ast.Module,
    table: symtable.SymbolTable,
) -> None:
    """Names that neither the code nor its `args` define."""
    args = task.inputs.get("args", {})
    if not isinstance(args, Mapping) or _is_reaching(tree):
        return
    defined = {*_defined(table), *args}
    told: set[str] = set()
    for name in _read(tree):
        if name.id in defined or name.id in _GIVEN or name.id in told or len(told) >= MOST_TOLD:
            continue
        told.add(name.id)
        spot = (name.lineno - 1, _column(text, name))
        said = f"nothing defines '{name.id}' in the code"
        reader.report_inside("code-name", at, spot, said, _hint(reader, name.id, defined))
    _check_main(reader, at, text, tree, args, defined)


def _hint(reader: Reader, name: str, defined: set[str]) -> str:
    if name in _NAMESPACES:
        pass_it = f'args: {{ x: "{{{{ {name}.x }}}}" }}'
        return f"code sees only its `args`; pass what it needs, such as {pass_it}, and read x"
    pass_it = f'pass it: args: {{ {name}: "{{{{ … }}}}" }}'
    return reader.suggest(name, [one for one in defined if not one.startswith("__")], pass_it)


def _is_reaching(tree: ast.Module) -> bool:
    return any(
        (isinstance(node, ast.Name) and node.id in _REACHING)
        or (isinstance(node, ast.ImportFrom) and any(one.name == "*" for one in node.names))
        for node in ast.walk(tree)
    )


def _defined(table: symtable.SymbolTable, depth: int = 0) -> Iterator[str]:
    """Every name that some part of the code binds: a name of another function counts too."""
    for symbol in table.get_symbols():
        if symbol.is_assigned() or symbol.is_imported() or symbol.is_parameter():
            yield symbol.get_name()
    if depth < 50:
        for child in table.get_children():
            yield child.get_name()
            yield from _defined(child, depth + 1)


def _read(tree: ast.Module) -> Iterator[ast.Name]:
    found = (node for node in ast.walk(tree) if isinstance(node, ast.Name))
    loads = [node for node in found if isinstance(node.ctx, ast.Load)]
    return iter(sorted(loads, key=lambda node: (node.lineno, node.col_offset)))


def _column(text: str, node: ast.Name) -> int:
    """Python counts bytes, we count characters."""
    line = text.split("\n")[node.lineno - 1].encode()
    return len(line[: node.col_offset].decode(errors="ignore"))


def _check_main(
    reader: Reader, at: At, text: str, tree: ast.Module, args: Mapping[str, Any], defined: set[str]
) -> None:
    """OUT-3: without a `result`, `main` is called with those args that it takes."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    mains = [one for one in tree.body if isinstance(one, functions) and one.name == "main"]
    if not mains and tree.body and all(isinstance(one, _IDLE) for one in tree.body):
        said = "the code defines functions and calls none: it does nothing"
        names = [one.name for one in tree.body if isinstance(one, functions)]
        near = closest("main", names)
        hint = f"rename '{near}': main" if near else "define main(…), or set `result`"
        reader.report_inside("code-name", at, (tree.body[-1].lineno - 1, 0), said, hint)
    if not mains or "result" in defined or mains[-1].decorator_list:
        return
    taken = mains[-1].args
    places = [*taken.posonlyargs, *taken.args]
    needed = places[: len(places) - len(taken.defaults)]
    needed += [
        one for one, default in zip(taken.kwonlyargs, taken.kw_defaults, strict=True) if not default
    ]
    for one in needed:
        if one.arg not in args:
            spot = (one.lineno - 1, len(text.split("\n")[one.lineno - 1][: one.col_offset]))
            said = f"main needs '{one.arg}', which `args` does not have"
            hint = did_you_mean(one.arg, args, f'pass it: args: {{ {one.arg}: "{{{{ … }}}}" }}')
            reader.report_inside("code-name", at, spot, said, hint)
