"""Podman and Docker by their command lines: which is there, and the words that each understands."""

import base64
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec

from noetl.tools.container.orders import ContainerSpec
from noetl.tools.refusal import Refusal

PROGRAMS = ("podman", "docker")
"""Looked for in this order."""
INHERITED = frozenset(
    (
        *("PATH", "HOME", "USER", "LOGNAME", "LANG", "TMPDIR", "DBUS_SESSION_BUS_ADDRESS"),
        *("XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME"),
        *("CONTAINER_HOST", "CONTAINER_SSHKEY", "CONTAINERS_CONF", "CONTAINERS_CONF_OVERRIDE"),
        *("CONTAINERS_STORAGE_CONF", "CONTAINERS_REGISTRIES_CONF", "REGISTRY_AUTH_FILE"),
        *("DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "DOCKER_CERT_PATH"),
        *("DOCKER_TLS_VERIFY", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"),
        *("http_proxy", "https_proxy", "no_proxy"),
    )
)
"""What the command line itself needs of the worker's environment; nothing of it gets inside."""
STEERS = re.compile(
    r"_.*|(LD|GLIBC|MALLOC|CONTAINERS?|DOCKER|PODMAN|BUILDAH|BUILDKIT|STORAGE|CNI|XDG|DBUS|SSL|SSH"
    r"|LISTEN|OTEL|GPG)_.*|GO[A-Z]+|REGISTR.*|NETAVARK.*|.*PROXY|TMP.*|TZ.*|NOTIFY_SOCKET|GNUPGHOME"
    r"|GCONV_PATH|LOCPATH|NLSPATH|GETCONF_DIR|HOSTALIASES|LOCALDOMAIN|RES_OPTIONS|RESOLV_HOST_CONF",
    re.IGNORECASE,
)
"""Further names that the program, what it starts, or the loader of either listens to."""
LONGEST_LINE = 60_000
"""Bytes; both programs read the file of an environment by lines of at most 65,536."""
KEEPER = "noetl.host"
"""Label of every container: the machine whose worker is to remove it."""
INSTALL = (
    "install podman (apt install podman, dnf install podman) or Docker where the worker runs,"
    " or name a Kubernetes cluster in 'auth'"
)


class ContainerRuntime(msgspec.Struct, frozen=True):
    """One of the two, and the environment that it is started with."""

    name: str
    path: str
    environment: dict[str, str]


def program_of(asked: str | None, environment: Mapping[str, str]) -> ContainerRuntime:
    """The program that was asked for, else the first that is installed."""
    own = {name: value for name, value in environment.items() if name in INHERITED}
    for name in (asked,) if asked else PROGRAMS:
        found = shutil.which(name, path=own.get("PATH", os.defpath))
        if found:
            return ContainerRuntime(name, found, own)
    says = f"{asked} is not installed" if asked else "neither podman nor docker is installed"
    raise Refusal("container", f"{says} on this worker; {INSTALL}")


def run_words(
    program: ContainerRuntime, order: ContainerSpec, name: str, host: str, environment: list[str]
) -> list[str]:
    """The command line; values of the environment are not on it, see `environment_words`."""
    words = ["run", "--name", name, "--label", f"{KEEPER}={host}"]
    words += ["--quiet", "--log-driver", "none", "--security-opt", "no-new-privileges"]
    words += ["--network", order.network]
    if program.name == "podman":
        words += ["--http-proxy=false"]  # a proxy's address may hold its password
    if order.stdin is not None:
        words += ["--interactive"]
    size = None if order.memory is None else f"{order.memory}b"
    cpus = None if order.cpu is None else f"{order.cpu:g}"
    bounds = {"--workdir": order.workdir, "--cpus": cpus, "--memory": size, "--memory-swap": size}
    for flag, value in bounds.items():
        words += [] if value is None else [flag, value]
    for bind in order.binds:
        mode = ",readonly" if bind.read_only else ""
        words += ["--mount", f"type=bind,source={bind.source},target={bind.target}{mode}"]
    words += environment
    first, rest = order.command[:1], order.command[1:]
    entry = ["--entrypoint", first[0]] if first else []
    return [program.path, *words, *entry, order.image, *rest]


def environment_words(order: ContainerSpec, file: int) -> list[str]:
    """Names alone are on the command line; `file` is that of `environment_file`."""
    words = [word for name in beside(order) for word in ("--env", name)]
    return (
        words
        if len(words) == 2 * len(order.environment)
        else [*words, "--env-file", f"/dev/fd/{file}"]
    )


def beside(order: ContainerSpec) -> dict[str, str]:
    """
    Values that no file can hold: the program reads these from its own environment. Under names
    that mean something to it (LD_PRELOAD) it would itself do what the container is told to.
    """
    values = {name: text for name, text in order.environment.items() if not is_line(text)}
    for name in values:
        if name in INHERITED or STEERS.fullmatch(name):
            says = f"env.{name} cannot have several lines, nor more than {LONGEST_LINE} bytes"
            raise Refusal("input", f"{says}; use another name, or 'stdin'")
    return values


def is_line(text: str) -> bool:
    return not re.search(r"[\r\n]", text) and len(text.encode("utf-8", "replace")) <= LONGEST_LINE


@contextmanager
def environment_file(order: ContainerSpec) -> Iterator[int]:
    """A file in memory with all other values: no task of the same user finds it on a disk."""
    lines = [f"{name}={text}\n" for name, text in order.environment.items() if is_line(text)]
    descriptor = os.memfd_create("environment")
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(os.fsencode("".join(lines)))
        yield descriptor
    finally:
        os.close(descriptor)


def with_login(
    program: ContainerRuntime, folder: Path, fields: Mapping[str, object]
) -> ContainerRuntime:
    """The program with a credential for a registry, in a file that both kinds can read."""
    user, password = fields.get("username", fields.get("user")), fields.get("password")
    registry = fields.get("host", fields.get("registry"))
    if not (user and password and registry):
        says = "a credential for a container needs host (of the registry), username and password"
        raise Refusal("auth", f"{says}; or address and token, for a Kubernetes cluster")
    token = base64.b64encode(f"{user}:{password}".encode()).decode()
    file = folder / "config.json"
    write_private(file, msgspec.json.encode({"auths": {str(registry): {"auth": token}}}).decode())
    where = {"REGISTRY_AUTH_FILE": str(file), "DOCKER_CONFIG": str(folder)}
    return msgspec.structs.replace(program, environment={**program.environment, **where})


def write_private(file: Path, content: str) -> None:
    with open(os.open(file, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w") as opened:
        opened.write(content)
