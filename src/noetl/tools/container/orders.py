"""What a task asks to be run in a container: words for the command line, and what goes beside."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from noetl.kinds.code import ContainerInputs
from noetl.masking import KNOWN
from noetl.tools.process.inside.program_files import program_folders
from noetl.tools.process.orders import stdin_of, text_of
from noetl.tools.refusal import Refusal
from noetl.tools.resources import cpu_of, memory_of, refuse_others
from noetl.tools.tool import ToolCall

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
"""Of a variable: podman reads a star as a pattern over its own environment."""
NETWORK = re.compile(r"[A-Za-z0-9][\w.-]*")
"""`container:` and `ns:` would join the network of others."""
IMAGE = re.compile(
    r"(docker://)?[A-Za-z0-9][\w.-]*(:\d+(?=/))?(/[A-Za-z0-9][\w.-]*)*(:\w[\w.-]*)?(@[\w.:+-]+)?"
)
"""Of a registry: `oci-archive:/path` and its like would read any file of the machine."""
RESOURCES = ("cpu", "memory")


class Mount(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One of `mounts`: a file or folder of the playbook, shown in the container."""

    source: str
    target: str
    read_only: bool = True


class ContainerSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What every place that runs containers needs to know."""

    image: str
    command: list[str]
    """Empty: the image's own."""
    environment: dict[str, str]
    stdin: bytes | None
    binds: list[Mount]
    network: str
    workdir: str | None
    cpu: float | None
    memory: int | None
    """`spec.resources`; None sets no limit."""


def order_of(call: ToolCall[ContainerInputs]) -> ContainerSpec:
    """The inputs, checked; raises Refusal."""
    inputs = call.inputs
    if not IMAGE.fullmatch(inputs.image):
        raise Refusal("input", f"image is {inputs.image!r}; expected a name such as 'alpine:3'")
    if not NETWORK.fullmatch(inputs.network):
        says = f"network is {inputs.network!r}; expected none, host, bridge or the name of one"
        raise Refusal("input", says)
    if inputs.workdir is not None and not inputs.workdir.startswith("/"):
        raise Refusal("input", f"workdir is {inputs.workdir!r}; expected a path from the root")
    refuse_others(call.resources, RESOURCES)
    return ContainerSpec(
        image=inputs.image,
        command=command_of(inputs),
        environment=environment_of(inputs.env),
        stdin=stdin_of(inputs.stdin),
        binds=[bind_of(mount, call) for mount in inputs.mounts],
        network=inputs.network,
        workdir=inputs.workdir,
        cpu=cpu_of(call.resources, "a number above 0"),
        memory=memory_of(call.resources),
    )


def command_of(inputs: ContainerInputs) -> list[str]:
    """A text is for the shell of the image, a list is the program with its words."""
    given = inputs.command
    words = ["/bin/sh", "-c", given] if isinstance(given, str) else list(given or [])
    if isinstance(given, str) and inputs.args:
        words.append("sh")  # the shell's $0; the arguments are $1 and so on
    words += [text_of(value) for value in inputs.args]
    for word in words:
        if "\0" in word:
            raise Refusal("input", "command and args cannot hold the character U+0000")
        if KNOWN.holds(word):
            # Every user of the machine can read a command line (trust model).
            says = "command or args hold a secret, and a command line can be read by others"
            raise Refusal("input", f"{says}; pass it in 'env' or 'stdin'")
    return words


def environment_of(given: Mapping[str, Any]) -> dict[str, str]:
    environment = {}
    for name, value in given.items():
        if not NAME.fullmatch(name):
            raise Refusal("input", f"env has the name '{name}'; expected letters, digits and '_'")
        environment[name] = text_of(value)
        if "\0" in environment[name]:
            raise Refusal("input", f"env.{name} cannot hold the character U+0000")
    return environment


def bind_of(given: Mapping[str, Any], call: ToolCall[Any]) -> Mount:
    try:
        mount = msgspec.convert(given, Mount)
    except msgspec.ValidationError as fault:
        says = f"mounts hold {given!r}: {fault}; expected source, target and read_only"
        raise Refusal("input", says) from None
    source = call.path(mount.source)
    for own in call.private:
        if Path(own).is_relative_to(source):
            says = f"mount '{mount.source}' holds files of NoETL itself, in {own}"
            raise Refusal("input", f"{says}; mount a folder inside it")
    program = [] if mount.read_only else [Path(own) for own in program_folders()]
    if any(own.is_relative_to(source) or source.is_relative_to(own) for own in program):
        says = f"mount '{mount.source}' holds files of the program itself"
        raise Refusal("input", f"{says}; mount it read_only, or a folder inside it")
    if not source.exists():
        raise Refusal("not_found", f"mount '{mount.source}' does not exist in {call.folder}")
    if not mount.target.startswith("/"):
        raise Refusal("input", f"mount target is {mount.target!r}; expected a path from the root")
    for path in (str(source), mount.target):
        if any(sign in path for sign in ',"\n\0'):
            raise Refusal("input", f"the path of a mount, {path!r}, holds a comma or a quote")
    return msgspec.structs.replace(mount, source=str(source))
