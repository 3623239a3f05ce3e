"""Where the requirements of a task are installed: one folder for each set of them, made once."""

import asyncio
import fcntl
import hashlib
import os
import re
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from noetl.tools.children import end_group, spawn_async
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
UNREACHED = re.compile(
    r"connect|timed? ?out|dns|resolve host|name resolution|network|unreachable|50[0234]",
    re.IGNORECASE,
)


class Libs:
    """The cached folders below `home`; they are shared by all processes that use it."""

    def __init__(self, home: Path, python: str) -> None:
        self._home = home / "libs"
        self._python = python
        self._found: dict[tuple[str, ...], str] = {}

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
                found = f"libs holds {line!r}, which is no requirement"
                raise Refusal("input", f"{found}; expected such as 'requests>=2'")
        text = "\n".join((sys.version, self._python, *wanted))
        folder = self._home / hashlib.sha256(text.encode()).hexdigest()[:24]
        if folder.exists():
            return str(folder)
        try:
            self._home.mkdir(parents=True, exist_ok=True)
            async with locked(folder.with_suffix(".lock")):
                if not folder.exists():
                    await self._install(wanted, folder)
        except OSError as fault:
            says = f"libs cannot be installed below {self._home}: {fault}"
            raise Refusal("python", says) from None
        return str(folder)

    async def _install(self, wanted: tuple[str, ...], folder: Path) -> None:
        """Into a folder beside it first: nobody ever sees half of it."""
        made = tempfile.mkdtemp(prefix=folder.name, dir=self._home)
        try:
            await self._run_installer(wanted, made)
            os.rename(made, folder)
        finally:
            shutil.rmtree(made, ignore_errors=True)

    async def _run_installer(self, wanted: tuple[str, ...], target: str) -> None:
        process = await spawn_async(
            *(*self._installer(), "--target", target, "--", *wanted),
            stderr=asyncio.subprocess.STDOUT,
            env={name: text for name, text in os.environ.items() if PASSED_ON.fullmatch(name)},
        )
        try:
            output, _ = await process.communicate()
        except asyncio.CancelledError:
            end_group(process.pid)
            await process.wait()
            raise
        if process.returncode:
            told = output.decode("utf-8", "replace").strip()
            last = "\n".join(told.splitlines()[-LAST_LINES:])
            message = f"libs cannot be installed: {', '.join(wanted)}\n{last}"
            raise Refusal("python", message, retryable=bool(UNREACHED.search(told)))

    def _installer(self) -> list[str]:
        uv = shutil.which("uv")
        if uv:
            return [uv, "pip", "install", "-q", "--compile-bytecode", "--python", self._python]
        return [self._python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]


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
