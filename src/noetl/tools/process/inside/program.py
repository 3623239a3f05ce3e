"""What can be known of a playbook's code before it runs, and how it is run."""

from __future__ import annotations

import builtins
import opcode
import sys
from _contextvars import Context
from types import CodeType, CoroutineType, ModuleType

TYPE_CHECKING = False  # `typing` takes longer to load than all the rest
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


def words(text: str) -> frozenset[str]:
    """A table of names."""
    return frozenset(text.split())


SOURCE = "<code>"
"""The name of the code's text in a traceback."""
COROUTINE, STAR_NAMES = 0x80, 0x08
"""Of `co_flags`: an `async def`; a `**names`."""
OPENING = (opcode.opmap["IMPORT_NAME"], opcode.opmap["MATCH_CLASS"])
"""Instructions: an import, and `case object(name=…)`, whose names are in no list of names."""
REACHING = words(
    "breakpoint compile delattr eval exec getattr globals locals open setattr vars "
    "ag_frame cr_frame f_back f_builtins f_globals gi_frame tb_frame"
)
"""Names by which code without an import reaches out of its own names; so does any private one."""
HEARD = words("print input exit quit help id hash object memoryview SystemExit")
"""Names by which code is heard outside, or tells one run of it from another."""
LASTING = words(
    "atexit ctypes dup2 faulthandler gc locale multiprocessing putenv register_at_fork resource "
    "setprofile settrace signal tracemalloc"
)
"""Names of what changes the process itself: after such a code the child is not used again."""
STATELESS = words(
    "asyncio base64 binascii bisect calendar collections copy csv dataclasses datetime decimal "
    "difflib enum fractions functools hashlib heapq hmac html itertools json math operator re "
    "secrets string struct subprocess textwrap threading time typing unicodedata urllib.parse "
    "uuid xml.etree.ElementTree zlib zoneinfo"
)
"""Modules without a state that one call could leave to the next: they stay loaded."""


class Program:
    """A compiled code, and what its text says about it."""

    def __init__(self, text: str) -> None:
        self.code = compile(text, SOURCE, "exec", dont_inherit=True)
        parts = list(parts_of(self.code))
        names = {name for part in parts for name in part.co_names}
        self.harmless = not any(name[0] == "_" or name in REACHING for name in names) and not any(
            one in part.co_code[::2] for part in parts for one in OPENING
        )
        """Touches nothing but its own names, so nothing needs to be looked over afterwards."""
        self.pure = self.harmless and names.isdisjoint(HEARD)
        """Says nothing either: nobody can tell whether it ran once or twice."""
        self.lasting = not names.isdisjoint(LASTING)
        self.modules = sorted(names & STATELESS)
        if any(part.co_name == "main" and part.co_flags & COROUTINE for part in parts):
            self.modules.append("asyncio")


def parts_of(code: CodeType) -> Iterator[CodeType]:
    """The code, and that of all functions and classes within."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from parts_of(constant)


def run(program: Program, args: dict[str, Any]) -> Any:
    """
    The value of `result`, or what `main` returns (OUT-3), with names of its own.

    Where the code sets `result` itself, `main` is its own affair and is not called a second time.
    The context is new as well, since it holds what decimal keeps.
    """
    module = ModuleType("task")
    names = vars(module)
    names["__builtins__"] = builtins
    names.update(args)
    sys.modules["task"] = module
    context = Context()
    try:
        context.run(exec, program.code, names)
        given = args.get("result", names)
        if names.get("result", given) is given and callable(names.get("main")):
            return context.run(call_main, names["main"], args)
    except SystemExit as ended:
        if ended.code not in (None, 0):
            raise
    return names.get("result")


def call_main(main: Any, args: dict[str, Any]) -> Any:
    """What `main` returns, called with those args that its signature takes."""
    first, rest = taken_by(main, args)
    value = main(*first, **rest)
    if isinstance(value, CoroutineType):
        import asyncio

        return asyncio.run(value)
    return value


def taken_by(main: Any, args: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """The args by place and by name; what is missing, Python itself says in its own words."""
    code = getattr(main, "__code__", None)
    if not isinstance(code, CodeType) or code.co_flags & STAR_NAMES:
        names = set(args)
    else:
        names = set(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
    by_place = code.co_varnames[: code.co_posonlyargcount] if code else ()
    first = [args[name] for name in by_place if name in args]
    rest = {name: args[name] for name in args if name in names and name not in by_place}
    return first, rest
