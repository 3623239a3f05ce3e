"""The kinds that run code of the author: Python, a script, a shell command, a container."""

from functools import partial
from typing import Annotated, Any, Literal

from noetl.kinds.fields import Arguments, Auth, Environment, Stdin, doc
from noetl.kinds.kind import Inputs, Kind


class PythonInputs(Inputs, frozen=True, kw_only=True):
    """TOOL-3."""

    code: Annotated[str, doc("Python source that sets `result`, or defines `main(...)`.")]
    args: Arguments = {}
    libs: Annotated[list[str], doc("Requirements to install, such as `requests>=2`.")] = []


class ScriptInputs(Inputs, frozen=True, kw_only=True):
    """TOOL-0: a file beside the playbook, or text of its own."""

    path: Annotated[str | None, doc("File of the script, relative to the playbook's file.")] = None
    code: Annotated[str | None, doc("The script's text, instead of a file.")] = None
    interpreter: Annotated[
        str | list[str] | None,
        doc("Program that runs the script, such as `bash`; else its first line says."),
    ] = None
    args: Annotated[
        list[Any] | dict[str, Any], doc("Command-line arguments; a mapping gives `--name value`.")
    ] = []
    stdin: Stdin = None
    env: Environment = {}


class ShellInputs(Inputs, frozen=True, kw_only=True):
    """TOOL-0."""

    command: Annotated[str, doc("Command line for the system's shell.")]
    stdin: Stdin = None
    env: Environment = {}


class ContainerInputs(Inputs, frozen=True, kw_only=True):
    """One container that is run to its end."""

    image: Annotated[str, doc("Image to run, with its tag or digest.")]
    command: Annotated[
        str | list[str] | None,
        doc("Text for the image's shell, or a program; else the image's own."),
    ] = None
    args: Annotated[list[Any], doc("Arguments after the command.")] = []
    stdin: Stdin = None
    env: Environment = {}
    mounts: Annotated[
        list[dict[str, Any]],
        doc("Files and folders next to the playbook: `{source, target, read_only}`."),
    ] = []
    network: Annotated[str, doc("Network of the container; none by default.")] = "none"
    workdir: Annotated[str | None, doc("Working folder in the container.")] = None
    engine: Annotated[
        Literal["podman", "docker", "kubernetes"] | None,
        doc("What runs it; else what `auth` is for, or what is installed."),
    ] = None
    auth: Auth = None


_BY_ENV = 'pass it: env: { NAME: "{{ … }}" }, and read "$NAME" in quotes'
_BY_ARGS = 'pass it: args: { name: "{{ … }}" }, and read name in the code'
_ENDED = ("exit_code", "signal", "encoding")
_code = partial(Kind, knobs=("resources",))

PYTHON = _code(
    "python",
    PythonInputs,
    "Run Python code in an isolated child process.",
    block="py",
    tells=("exception_type", "traceback"),
    programs={"code": _BY_ARGS},
)
SCRIPT = Kind(
    "script",
    ScriptInputs,
    "Run a script with its interpreter.",
    block="script",
    tells=_ENDED,
    knobs=("resources",),
    one_of=(("path", "code"),),
    programs={"code": 'pass it: env: { NAME: "{{ … }}" } or args: [ "{{ … }}" ]'},
)
SHELL = _code(
    "shell",
    ShellInputs,
    "Run a shell command.",
    block="shell",
    tells=_ENDED,
    programs={"command": _BY_ENV},
)
CONTAINER = _code(
    "container",
    ContainerInputs,
    "Run a container to its end.",
    block="container",
    tells=("engine", "image", "image_id", "exit_code", "oom_killed"),
    programs={"command": _BY_ENV},
)
