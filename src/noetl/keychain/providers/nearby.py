"""Secrets of this machine: environment variables and files."""

from collections.abc import Mapping
from pathlib import Path

from noetl.errors import CredentialMissing
from noetl.keychain.fields import Fields


class EnvironmentProvider:
    """Provider; the key is the name of a variable of the worker's process."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    async def fetch(self, key: str, login: Fields | None) -> str:
        del login
        if key not in self._environment:
            raise CredentialMissing(f"there is no environment variable {key}; set it on the worker")
        return self._environment[key]


class FileProvider:
    """Provider; the key is a path. A last newline belongs to the editor, not to the secret."""

    async def fetch(self, key: str, login: Fields | None) -> str:
        del login
        path = Path(key).expanduser()
        try:
            return path.read_text("utf-8").removesuffix("\n").removesuffix("\r")
        except FileNotFoundError:
            raise CredentialMissing(f"there is no file {key}; put the secret there") from None
        except UnicodeDecodeError:
            raise CredentialMissing(f"file {key} is no text in UTF-8") from None
        except OSError as wrong:
            raise CredentialMissing(
                f"file {key} cannot be read: {wrong.strerror or wrong}"
            ) from None
