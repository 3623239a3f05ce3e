"""Where the requirements of a task are installed: one folder for each set of them, made once."""

import asyncio
import fcntl
import hashlib
import os
import re
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from noetl.private import private_folder
from noetl.tools.bounds import DEMANDED, Namespaces
from noetl.tools.process.running import ProcessSpec, RunningCommand
from noetl.tools.refusal import Refusal

PATIENCE = 0.05
"""Seconds between two looks at a lock that another process holds."""
LAST_LINES = 8
PASSED_ON = re.compile(
    r"(PATH|HOME|LANG|LC_.*|TMPDIR|XDG_.*|SSL_CERT_.*|REQUESTS_CA_BUNDLE|UV_.*|PIP_.*"
    r"|(HTTP|HTTPS|ALL|NO)_PROXY)",
    re.IGNORECASE,
)
"""What the installer needs of the environment. Nothing of NoETL: packages may run code."""
OWN_PLACES = {"TMPDIR": "temporary", "UV_CACHE_DIR": "cache", "PIP_CACHE_DIR": "cache"}
"""Variables of an installer → folders beside what it installs, which go when it ends."""
UNREACHED = re.compile(
    r"connect|timed? ?out|dns|resolve host|name resolution|network|unreachable|50[0234]",
    re.IGNORECASE,
)
NO_WHEEL = re.compile(
    r"no (usable )?wheels|has no wheel|only-binary|binary|source dist", re.IGNORECASE
)
PLACE = re.compile(r"[@/\\:]|^\.")
"""A requirement that says where it lies, in a name or in an address such as `file:%2Fsrv%2Fx`."""
WHEEL = re.compile(
    r"(?:[\w.\[\], -]+@\s*)?"
    r"(?:https?://(?:[^\s/@]+@)?[^\s/@]+/[^\s@:]+|(?P<local>(?:file://)?[^\s@:]+))\.whl"
)
"""A file that is one by its name; what comes behind a `#`, `?` or `;` may say anything."""
PIP = """
import sys

def refuse(event, given):
    if event == "subprocess.Popen" and str(given[0]).rpartition("/")[2] != "keyring":
        raise PermissionError(1, "it has no wheel, and would be built")

sys.addaudithook(refuse)
from pip._internal.cli.main import main
sys.exit(main())
"""
"""
Told to take wheels only, pip builds what has an address all the same, and a wheel may depend on
that. It builds, and fetches with git, in processes of their own; of others it needs but `keyring`.
"""
WHEELS_ONLY = (
    "the worker installs wheels only; with its setting libs_build it builds packages from source,"
    " which runs their code"
)


def folder_of_libs(home: Path) -> Path:
    return home / "libs"


def is_wheel(requirement: str) -> bool:
    """Whether what lies at the place that it names is installed as it is."""
    place = WHEEL.fullmatch(re.split(r"[#?;]", requirement, maxsplit=1)[0].strip())
    if place is None:
        return False
    local = place["local"]
    return local is None or not Path(f"{local.removeprefix('file://')}.whl").is_dir()


class Libs:
    """The cached folders below `home`; they are shared by all processes that use it."""

    def __init__(
        self,
        home: Path,
        python: str,
        *,
        namespaces: Namespaces = "auto",
        private: Sequence[str] = (),
        build: bool = False,
    ) -> None:
        self._home = folder_of_libs(home)
        self._python = python
        self._namespaces = namespaces
        self._private = list(private)
        self._build = build
        self._found: dict[tuple[str, ...], str] = {}

    def make(self) -> None:
        """Children that start before the first one is there shall see where they lie, too."""
        with suppress(OSError):  # said by whoever needs it
            private_folder(self._home)

    async def folder(self, requirements: list[str]) -> str:
        """The folder that holds them; installs them if it is not there; raises Refusal."""
        wanted = tuple(sorted({line.strip() for line in requirements}))
        if not wanted:
            return ""
        if wanted not in self._found:
            self._found[wanted] = await self._installed(wanted)
        return self._found[wanted]

    async def _installed(self, wanted: tuple[str, ...]) -> str:
        for line in wanted:
            if not line or line.startswith("-"):
                found = f"libs holds {line!r}, which is not a requirement"
                raise Refusal("input", f"{found}; expected such as 'requests>=2'")
            if not self._build and PLACE.search(line) and not is_wheel(line):
                raise Refusal("input", f"libs holds {line!r}, which is not a wheel; {WHEELS_ONLY}")
        text = "\n".join((sys.version, self._python, *wanted))
        folder = self._home / hashlib.sha256(text.encode()).hexdigest()[:24]
        if folder.exists():
            return str(folder)
        try:
            private_folder(self._home)
            async with locked(folder.with_suffix(".lock")):
                if not folder.exists():
                    await self._install(wanted, folder)
        except OSError as fault:
            says = f"libs cannot be installed below {self._home}: {fault}"
            raise Refusal("python", says) from None
        return str(folder)

    async def _install(self, wanted: tuple[str, ...], folder: Path) -> None:
        """
        Into a folder beside it first: nobody ever sees half of it. What the installer downloads
        and unpacks lies there too, and goes with it: tasks could write to a cache of their user,
        and so change what is installed for others.
        """
        made = tempfile.mkdtemp(prefix=folder.name, dir=self._home)
        try:
            for name in ("packages", "temporary"):
                private_folder(Path(made, name))
            await self._run_installer(wanted, made)
            os.rename(f"{made}/packages", folder)
        finally:
            shutil.rmtree(made, ignore_errors=True)

    async def _run_installer(self, wanted: tuple[str, ...], made: str) -> None:
        """
        Confined like any code of others: what is built from source runs as it likes, and reaches
        no folder but its own. What is installed for others nobody can change.
        """
        passed = {name: text for name, text in os.environ.items() if PASSED_ON.fullmatch(name)}
        own = {name: f"{made}/{place}" for name, place in OWN_PLACES.items()}
        binary = () if self._build else ("--only-binary", ":all:")
        order = ProcessSpec(
            words=[*self._installer(), *binary, "--target", f"{made}/packages", "--", *wanted],
            environment=passed | own,
            namespaces=self._namespaces,
            private=self._private,
            shown=[made] if self._private else [],
            writes=True,
        )
        output = bytearray()
        running = RunningCommand(order, f"{made}/temporary", lambda _, piece: output.extend(piece))
        try:
            ended = await asyncio.shield(running.ended)
        except asyncio.CancelledError:
            running.kill()
            await running.ended
            raise
        if ended.lacking:
            raise Refusal("input", DEMANDED)
        if ended.exit_code != 0:
            told = output.decode("utf-8", "replace").strip()
            why = [line for line in told.splitlines() if not line.startswith("WARNING")]
            last = "\n".join(line.removeprefix("ERROR: ") for line in why[-LAST_LINES:])
            message = f"libs cannot be installed ({', '.join(wanted)}): {last}"
            if not self._build and NO_WHEEL.search(told):
                message += f"\n{WHEELS_ONLY}"
            raise Refusal("python", message, retryable=bool(UNREACHED.search(told)))

    def _installer(self) -> list[str]:
        uv = shutil.which("uv")
        if uv:
            return [uv, "pip", "install", "-q", "--compile-bytecode", "--python", self._python]
        # Without -P it would look for its own modules among what it installs here.
        program = ["-m", "pip"] if self._build else ["-c", PIP]
        return [self._python, "-P", *program, "install", "-q", "--disable-pip-version-check"]


@asynccontextmanager
async def locked(path: Path) -> AsyncIterator[None]:
    """Hold a lock that other processes respect; it goes with the process that holds it."""
    with open(path, "w") as lock:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                await asyncio.sleep(PATIENCE)
        yield
