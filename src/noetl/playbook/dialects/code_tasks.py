"""Python code of public playbooks: `input_data`, `context`, `return`, `libs` (DIA-UP)."""

import ast
import sys
from typing import Final

from noetl.playbook.dialects.code import (
    PythonCode,
    read_code,
    read_through,
    returns_of,
    without_return,
)
from noetl.playbook.dialects.draft import Draft, own_tasks, shown
from noetl.playbook.dialects.pipeline import quoted
from noetl.playbook.dialects.places import Known
from noetl.playbook.dialects.public_tasks import block_text
from noetl.playbook.dialects.tree import Mapping, Scalar, TreeSlot, flowing

ALL_INPUTS: Final = "input_data"
EVERYTHING: Final = "context"


def code_of(task: Mapping) -> tuple[TreeSlot, PythonCode] | None:
    """The code of a python task, if it is text that parses."""
    slot = task.slot("code") if task.text("kind") == "python" else None
    text = slot.text if slot is not None else None
    code = read_code(text) if text is not None else None
    return None if slot is None or code is None else (slot, code)


def change_code(
    draft: Draft, slot: TreeSlot, new: str, old_word: str, new_word: str, *, code: str = ""
) -> None:
    """New code: in its block if it has one, else in the style that it had or a block of its own."""
    assert isinstance(slot.node, Scalar)
    if slot.node.style == "|" or "\n" not in new:
        slot.say(new)
    else:
        slot.node = block_text(new, slot.line)
    draft.tell(slot, old_word, new_word, code=code)


def at_line(slot: TreeSlot, line: int) -> TreeSlot:
    """The place of a line of the code in the document, where the spelling shows it."""
    shown_lines = isinstance(slot.node, Scalar) and slot.node.style == "|"
    return TreeSlot(slot.node, line=slot.line + line if shown_lines else slot.line, path=slot.path)


# ── libs ──


def imports_of_libs(draft: Draft, task: Mapping) -> None:
    """`libs` as a mapping named imports; a list names what is installed."""
    found, slot = code_of(task), task.slot("libs")
    if slot is None or not isinstance(slot.node, Mapping) or found is None:
        return
    lines: list[str] = []
    for one in slot.node.slots:
        line = _import_line(one)
        if line is None:
            draft.refuse(one, f"'{one.key}' of libs names no import", "write the import into code")
            return
        lines.append(line)
    modules = [line.split()[1].partition(".")[0] for line in lines]
    packages = [one for one in dict.fromkeys(modules) if one not in sys.stdlib_module_names]
    if packages:  # what does not come with Python is installed
        slot.node = flowing([_PACKAGES.get(one, one) for one in packages], slot.line)
    else:
        task.pop("libs")
    code_slot, code = found
    if not lines:
        draft.tell(slot, "libs: {}", "removed")
        return
    change_code(draft, code_slot, "\n".join(lines) + "\n" + code.text, "libs: { … }", lines[0])


# Modules whose package has another name.
_PACKAGES: Final = {
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python",
    "dateutil": "python-dateutil",
    "dotenv": "python-dotenv",
    "jwt": "PyJWT",
    "PIL": "Pillow",
    "sklearn": "scikit-learn",
    "yaml": "PyYAML",
}


def _import_line(slot: TreeSlot) -> str | None:
    name, node = slot.key or "", slot.node
    if isinstance(node, Mapping):
        module, word = node.text("from"), node.text("import") or node.text("name")
        if module is None:
            module, word = node.text("import") or node.text("module"), None
    else:
        module, word = slot.text, None
    if module is None or not name.isidentifier():
        return None
    if word is not None:
        return f"from {module} import {word}" + ("" if word == name else f" as {name}")
    return f"import {module}" + ("" if module == name else f" as {name}")


# ── comments ──


def quiet_comments(draft: Draft, task: Mapping) -> None:
    """Braces in a comment of code are no template: the run would read them (TPL-1)."""
    found = code_of(task)
    if found is None or not draft.notes or found[1].quiet == found[1].text:
        return
    change_code(draft, found[0], found[1].quiet, "braces in a comment", "{ { … } }")


# ── names that stand for all ──


def args_of(task: Mapping) -> Mapping:
    return task.mapping("args") or Mapping()


def all_inputs(draft: Draft, task: Mapping) -> None:
    """`input_data` held all inputs of the task."""
    found = code_of(task)
    if found is None or ALL_INPUTS in args_of(task):
        return
    slot, code = found
    main = _main_of(code)
    takes = main is not None and any(arg.arg == ALL_INPUTS for arg in _parameters(main))
    if not takes and (not code.uses(ALL_INPUTS) or code.bindings(ALL_INPUTS)):
        return
    if code.is_template:
        _refuse_template(draft, slot, ALL_INPUTS)
        return
    _take_carried(draft, task, slot, code)
    given = {one.key or "": one for one in args_of(task).slots}
    through = None if takes else read_through(code, ALL_INPUTS, given)
    if through is not None:
        change_code(draft, slot, through.text, "input_data.get('name')", "name")
        return
    _nest_args(draft, task, slot, code)


def _take_carried(draft: Draft, task: Mapping, slot: TreeSlot, code: PythonCode) -> None:
    """What tokens carry into the step was among the inputs too."""
    carried = draft.fact("carried", lambda: _carried_to(draft)).get(id(task), set())
    named = {chain.links[0].key: chain for chain in code.chains(ALL_INPUTS) if chain.links}
    for name in sorted(carried - set(args_of(task).keys())):
        default = named[name].links[0].default if name in named else None
        otherwise = _literal(default)
        if otherwise is not None and name.isidentifier():
            text = f"{{{{ args.{name} | default({otherwise}) }}}}"
            args = task.within("args", at=task.place("code"))
            args.put(name, quoted(text, slot.line)).line = slot.line


def _carried_to(draft: Draft) -> dict[int, set[str]]:
    """By python task: the names that arcs carry into its step."""
    into = Known(draft).carried
    return {
        id(label.node): names
        for step in draft.steps()
        if (names := into.get(step.text("step") or ""))
        for label in own_tasks(step)
    }


def _nest_args(draft: Draft, task: Mapping, slot: TreeSlot, code: PythonCode) -> None:
    """Where the code uses the mapping itself, it gets one; names read beside it stay."""
    args, at = task.slot("args"), task.place("code")
    if args is not None and not isinstance(args.node, Mapping):
        draft.refuse(args, "args is not a mapping", "write args: { name: value }")
        return
    outer = Mapping(line=slot.line)
    inner = args.node if args is not None else Mapping(line=slot.line, flow=True)
    assert isinstance(inner, Mapping)
    outer.put(ALL_INPUTS, inner)
    for one in inner.slots:
        if one.key is not None and code.uses(one.key) and not code.bindings(one.key):
            outer.put(one.key, one.node)
    if args is not None:
        args.node = outer
        draft.tell(args, "input_data", "args: { input_data: { … } }")
    else:
        made = task.put("args", outer, at=at)
        made.line, made.path = slot.line, slot.path
        draft.tell(slot, "input_data", "args: { input_data: {} }", now=made)


def _main_of(code: PythonCode) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    mains = [
        node
        for node in code.tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == "main"
    ]
    return mains[-1] if mains else None


def _parameters(main: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.arg]:
    return [*main.args.posonlyargs, *main.args.args, *main.args.kwonlyargs]


def everything(draft: Draft, task: Mapping) -> None:
    """`context` held every name; what the code reads of it becomes an argument."""
    found = code_of(task)
    if found is None or EVERYTHING in args_of(task):
        return
    slot, code = found
    main = _main_of(code)
    taken = (
        next((arg for arg in _parameters(main) if arg.arg == EVERYTHING), None) if main else None
    )
    if taken is not None:
        _refuse_whole(draft, slot, taken.lineno)
        return
    uses = code.uses(EVERYTHING)
    if not uses or code.bindings(EVERYTHING):
        return
    if code.is_template:
        _refuse_template(draft, slot, EVERYTHING)
        return
    through = read_through(code, EVERYTHING, None)
    if through is None:
        _refuse_whole(draft, slot, uses[0].lineno)
        return
    args = task.within("args", at=task.place("code"))
    for name, default in through.keys.items():
        otherwise = _literal(default)
        if otherwise is None:
            _refuse_whole(draft, slot, uses[0].lineno)
            return
        if name not in args:
            text = f"{{{{ {name} | default({otherwise}) }}}}"
            args.put(name, quoted(text, slot.line))
    change_code(draft, slot, through.text, "context.get('name')", "name, in args")


def _literal(default: ast.expr | None) -> str | None:
    """A default as templates write it."""
    if default is None:
        return "none"
    try:
        value = ast.literal_eval(default)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    if value is None or isinstance(value, bool):
        return str(value).lower()
    simple = isinstance(value, int | float) or value in ("", [], {}, ())
    if simple or (isinstance(value, str) and '"' not in value and "\\" not in value):
        return repr(value)
    return None


def _refuse_whole(draft: Draft, slot: TreeSlot, line: int) -> None:
    draft.refuse(
        at_line(slot, line),
        "the code uses `context`, all names of the execution at once, which it does not get",
        "name what it needs in args: { name: … } and read that",
    )


def _refuse_template(draft: Draft, slot: TreeSlot, name: str) -> None:
    draft.refuse(
        slot,
        f"the code uses `{name}` and is a template, so what it reads is not known before it runs",
        "pass values in args: { name: … } instead of templates in the code",
    )


# ── return ──


def top_level_return(draft: Draft, task: Mapping) -> None:
    """A `return` outside of functions."""
    found = code_of(task)
    if found is None:
        return
    slot, code = found
    first = next(returns_of(code.tree.body), None)
    if first is None:
        return
    names = [one.key for one in args_of(task).slots if one.key is not None]
    new = None if code.is_template else without_return(code, names)
    if new is None:
        draft.refuse(
            at_line(slot, first.lineno),
            "`return` is outside a function, and the code cannot be wrapped in one",
            "write def main(...): around the code, or set result",
        )
        return
    change_code(draft, slot, new, "return outside of a function", _first_line(new))


def _first_line(text: str) -> str:
    return shown("def main(…)" if text.startswith("def main(") else "result = …")
