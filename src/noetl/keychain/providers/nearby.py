"""Secrets of this machine: environment variables and files."""

from collections.abc import Mapping
from pathlib import Path

from noetl.errors import CredentialMissing
from noetl.keychain.asking import LONGEST
from noetl.keychain.fields import Fields
from noetl.tools.bounds import Bounds
from noetl.tools.environment import OWN
from noetl.tools.paths import inside, open_file, refuse_private
from noetl.tools.refusal import Refusal


class EnvironmentProvider:
    """Provider; the key is the name of a variable of the worker's process."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    async def fetch(self, key: str, login: Fields | None) -> str:
        del login
        if key.upper().startswith(OWN):
            raise CredentialMissing(f"{key} is a setting of NoETL itself, which no playbook reads")
        found = self._environment.get(key)
        if found is None:
            raise CredentialMissing(f"there is no environment variable {key}; set it on the worker")
        return found


class FileProvider:
    """Provider; the key is a path. A last newline belongs to the editor, not to the secret."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds

    async def fetch(self, key: str, login: Fields | None) -> str:
        del login
        path = self._path(key)
        try:
            with open_file(path) as file:
                found = file.read(LONGEST + 1)
            if len(found) > LONGEST:
                raise CredentialMissing(f"file {key} has more than {LONGEST:,} bytes: no secret")
            return found.decode().removesuffix("\n").removesuffix("\r")
        except FileNotFoundError:
            raise CredentialMissing(f"there is no file {key}; put the secret there") from None
        except UnicodeDecodeError:
            raise CredentialMissing(f"file {key} is not text in UTF-8") from None
        except Refusal as refusal:
            raise CredentialMissing(str(refusal)) from None
        except OSError as wrong:
            raise CredentialMissing(
                f"file {key} cannot be read: {wrong.strerror or wrong}"
            ) from None

    def _path(self, key: str) -> Path:
        """Where `files` is set it lies below; NoETL's own files are never a secret of a task."""
        path, files = Path(key).expanduser(), self._bounds.files
        try:
            if files is not None:
                return inside(files, str(path), files, self._bounds.private)
            path = path.resolve()
            refuse_private(path, key, self._bounds.private)
        except (OSError, ValueError, RuntimeError) as fault:  # a loop of links, a null byte
            raise CredentialMissing(f"file {key} cannot be read: {fault}") from None
        except Refusal as refusal:
            raise CredentialMissing(str(refusal)) from None
        return path
