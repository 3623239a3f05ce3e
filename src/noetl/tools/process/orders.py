"""What a task asks to be run: the program, its arguments, environment, input and bounds."""

import math
import os
import random
import shlex
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from noetl.kinds.code import ScriptInputs, ShellInputs
from noetl.masking import KNOWN
from noetl.tools.bounds import cpu_seconds
from noetl.tools.children import ENVIRONMENT
from noetl.tools.process.running import ProcessSpec
from noetl.tools.refusal import Refusal, bytes_of
from noetl.tools.resources import memory_of, refuse_others
from noetl.tools.tool import ToolCall

SHELL = "/bin/sh"
FIRST_LINE = 256
RESOURCES = ("cpu", "memory", "network")


def script_order(call: ToolCall[ScriptInputs], folder: str) -> ProcessSpec:
    """TOOL-0: a file beside the playbook, or text of its own."""
    inputs = call.inputs
    if (inputs.path is None) == (inputs.code is None):
        raise Refusal("input", "script needs either 'path' or 'code'")
    refuse_secrets([inputs.interpreter] if isinstance(inputs.interpreter, str) else ())
    environment = environment_of(inputs.env, call, folder)
    file = script_file(call, folder)
    words = interpreter_of(inputs.interpreter, file, call, environment["PATH"])
    return order_of(call, [*words, str(file), *arguments_of(inputs.args)], environment)


def shell_order(call: ToolCall[ShellInputs], folder: str) -> ProcessSpec:
    """The text lies in a file: a command line can be read by every user of the machine."""
    environment = environment_of(call.inputs.env, call, folder)
    file = written(Path(folder), "command", call.inputs.command)
    return order_of(call, [SHELL, str(file)], environment)


def order_of(call: ToolCall[Any], words: list[str], environment: dict[str, str]) -> ProcessSpec:
    if any("\0" in text for text in (*words, *environment, *environment.values())):
        raise Refusal("input", "arguments and environment cannot hold the character U+0000")
    refuse_secrets(words)
    resources = call.resources
    refuse_others(resources, RESOURCES)
    return ProcessSpec(
        words=words,
        environment=environment,
        stdin=stdin_of(call.inputs.stdin),
        # No limit where none is named: many programs reserve far more than they use.
        memory=memory_of(resources),
        cpus=cpus_of(resources.get("cpu")),
        network=network_of(resources.get("network", "host")),
        cpu_seconds=cpu_seconds(call.timeout.total, len(os.sched_getaffinity(0))),
    )


def refuse_secrets(words: Sequence[str]) -> None:
    """KEY-2; an interpreter is looked at before it is split, because its words are no secret."""
    if any(map(KNOWN.holds, words)):
        says = "a secret would appear on the command line, where every user of the machine can read"
        raise Refusal("input", f"{says} it; pass it in 'env' or 'stdin'")


def script_file(call: ToolCall[ScriptInputs], folder: str) -> Path:
    if call.inputs.code is not None:
        return written(Path(folder), "script", call.inputs.code)
    path = str(call.inputs.path)
    file = call.path(path)
    if not file.is_file():
        raise Refusal("not_found", f"no script '{path}' in {call.folder}")
    return file


def written(folder: Path, name: str, text: str) -> Path:
    """Beside the working folder, so that the command finds only what it made."""
    file = folder.with_name(f"{folder.name}.{name}")
    try:
        file.write_text(text, "utf-8", newline="")
    except UnicodeEncodeError as fault:
        raise Refusal("input", f"the {name} cannot be written as UTF-8: {fault}") from None
    file.chmod(0o700)
    return file


def interpreter_of(
    given: str | Sequence[str] | None, file: Path, call: ToolCall[Any], path: str
) -> list[str]:
    """The words before the script; none where the file is a program itself."""
    if given is None:
        with file.open("rb") as opened:
            first = opened.readline(FIRST_LINE)
        if not first.startswith(b"#!"):
            if b"\0" in first and os.access(file, os.X_OK):
                return []
            says = f"'{file.name}' does not say what runs it: begin it with a line such as"
            raise Refusal("input", f"{says} '#!/bin/sh', or name a program in 'interpreter'")
        words = first[2:].decode("utf-8", "replace").split(maxsplit=1)
        words = [word.strip() for word in words]
    else:
        words = split(given) if isinstance(given, str) else list(given)
    if not words or not words[0]:
        raise Refusal("input", "interpreter is empty; expected a program such as 'bash'")
    return [program_of(words[0], call, path), *words[1:]]


def split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as fault:
        raise Refusal("input", f"interpreter '{text}' cannot be read: {fault}") from None


def program_of(name: str, call: ToolCall[Any], path: str) -> str:
    """The full path of an interpreter, looked for where the command itself would look."""
    if "/" not in name:
        found = shutil.which(name, path=path)
        if found is None:
            says = f"interpreter '{name}' is not installed: looked in {path}"
            raise Refusal("not_found", f"{says}; install it, or name another in 'interpreter'")
        return found
    file = Path(name) if name.startswith("/") else call.path(name)
    if not os.access(file, os.X_OK) or file.is_dir():
        raise Refusal("not_found", f"interpreter '{name}' is not a program that can be run")
    return str(file)


def arguments_of(given: Sequence[Any] | Mapping[str, Any]) -> list[str]:
    """A mapping gives `--name value`; true gives the name alone, false and null nothing."""
    if not isinstance(given, Mapping):
        return [text_of(value) for value in given]
    words: list[str] = []
    for name, value in given.items():
        if value is None or value is False:
            continue
        words.append(f"--{name}")
        if value is not True:
            words.append(text_of(value))
    return words


def text_of(value: Any) -> str:
    """A value as a program reads it: text as it is, anything else as JSON."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def stdin_of(given: Any) -> bytes | None:
    return None if given is None else bytes_of(given, "stdin cannot be written")


def environment_of(given: Mapping[str, Any], call: ToolCall[Any], folder: str) -> dict[str, str]:
    """Nothing of the worker's own: what the task names, on top of what every program expects."""
    environment = {**ENVIRONMENT, "HOME": folder, "TMPDIR": folder}
    if call.folder is not None:
        environment["NOETL_FOLDER"] = call.folder
    for name, value in given.items():
        if not name or "=" in name:
            raise Refusal("input", f"env has the name '{name}'; expected letters, digits and '_'")
        environment[name] = text_of(value)
    return environment


def cpus_of(amount: Any) -> list[int]:
    """So many of the worker's processors, by chance; less than one is one."""
    if amount is None:
        return []
    try:
        count = math.ceil(float(amount))
    except (TypeError, ValueError, OverflowError):
        count = 0
    if isinstance(amount, bool) or count < 1:
        raise Refusal("input", f"spec.resources.cpu is {amount!r}; expected a number above 0")
    mine = sorted(os.sched_getaffinity(0))
    return sorted(random.sample(mine, count)) if count < len(mine) else []


def network_of(given: Any) -> bool:
    if given not in ("host", "none"):
        raise Refusal("input", f"spec.resources.network is {given!r}; expected host or none")
    return bool(given == "host")
