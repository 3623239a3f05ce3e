"""The kinds that run code of the author: Python, a script, a shell command, a container."""

from typing import Annotated, Any, Literal

from msgspec import Meta, field

from noetl.kinds.fields import Arguments, Auth, Environment, Stdin
from noetl.kinds.kind import Inputs, Kind


class PythonInputs(Inputs, frozen=True, kw_only=True):
    """TOOL-3."""

    code: Annotated[
        str, Meta(description="Python source that sets `result`, or defines `main(...)`.")
    ]
    args: Arguments = field(default_factory=dict)
    libs: Annotated[
        list[str], Meta(description="Requirements to install, such as `requests>=2`.")
    ] = field(default_factory=list)


class ScriptInputs(Inputs, frozen=True, kw_only=True):
    """TOOL-0: a file beside the playbook, or text of its own."""

    path: Annotated[
        str | None, Meta(description="File of the script, relative to the playbook's file.")
    ] = None
    code: Annotated[str | None, Meta(description="The script's text, instead of a file.")] = None
    interpreter: Annotated[
        str | list[str] | None,
        Meta(description="Program that runs the script, such as `bash`; else its first line says."),
    ] = None
    args: Annotated[
        list[Any] | dict[str, Any],
        Meta(description="Command-line arguments; a mapping gives `--name value`."),
    ] = field(default_factory=list)
    stdin: Stdin = None
    env: Environment = field(default_factory=dict)


class ShellInputs(Inputs, frozen=True, kw_only=True):
    """TOOL-0."""

    command: Annotated[str, Meta(description="Command line for the system's shell.")]
    stdin: Stdin = None
    env: Environment = field(default_factory=dict)


class ContainerInputs(Inputs, frozen=True, kw_only=True):
    """One container that is run to its end."""

    image: Annotated[str, Meta(description="Image to run, with its tag or digest.")]
    command: Annotated[
        str | list[str] | None,
        Meta(description="Text for the image's shell, or a program; else the image's own."),
    ] = None
    args: Annotated[list[Any], Meta(description="Arguments after the command.")] = field(
        default_factory=list
    )
    stdin: Stdin = None
    env: Environment = field(default_factory=dict)
    mounts: Annotated[
        list[dict[str, Any]],
        Meta(description="Files and folders beside the playbook: `{source, target, read_only}`."),
    ] = field(default_factory=list)
    network: Annotated[str, Meta(description="Network of the container; none by default.")] = "none"
    workdir: Annotated[str | None, Meta(description="Working folder in the container.")] = None
    engine: Annotated[
        Literal["podman", "docker", "kubernetes"] | None,
        Meta(description="What runs it; else what `auth` is for, or what is installed."),
    ] = None
    auth: Auth = None


PYTHON = Kind(
    name="python",
    inputs=PythonInputs,
    summary="Run Python code in an isolated child process.",
    block="py",
)
SCRIPT = Kind(
    name="script",
    inputs=ScriptInputs,
    summary="Run a script with its interpreter.",
    block="script",
    one_of=(("path", "code"),),
)
SHELL = Kind(name="shell", inputs=ShellInputs, summary="Run a shell command.", block="shell")
CONTAINER = Kind(
    name="container",
    inputs=ContainerInputs,
    summary="Run a container to its end.",
    block="container",
)
