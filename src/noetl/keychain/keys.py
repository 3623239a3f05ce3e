"""Where the key comes from: NOETL_KEY, else the file NOETL_KEY_FILE, else `key` in the home."""

import base64
import binascii
import fcntl
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from noetl.errors import CredentialUnreadable, SettingRefused
from noetl.keychain.box import LENGTH, Key, new_key
from noetl.masking import KNOWN
from noetl.private import private_file, private_folder
from noetl.tools.environment import VARIABLES

VARIABLE = "NOETL_KEY"
FILE_VARIABLE = "NOETL_KEY_FILE"
FILE = "key"
EXPECTED = f"{LENGTH} bytes in base64, the newest key first, older ones after a comma or a newline"


class Keyring:
    """The keys of a home: the first one seals, all of them open."""

    def __init__(self, keys: Sequence[Key]) -> None:
        self.newest = keys[0]
        self.all = tuple(keys)
        self._by_id = {key.id: key for key in keys}

    def __contains__(self, key_id: str) -> bool:
        return key_id in self._by_id

    def find(self, key_id: str, what: str) -> Key:
        """The key of that id, needed to open `what`."""
        if key_id not in self._by_id:
            raise CredentialUnreadable(
                f"{what} was sealed with key {key_id}, which is not available (available: "
                f"{', '.join(self._by_id)}); set {VARIABLE} or {FILE_VARIABLE} to the right one"
            )
        return self._by_id[key_id]


class KeySource:
    """Reads the keys of a home when they are first needed; only `make` makes the first one."""

    def __init__(
        self,
        home: Path | None,
        environment: Mapping[str, str] = VARIABLES,
        *,
        given: bytes | None = None,
    ) -> None:
        self._text = environment.get(VARIABLE, "")
        named = environment.get(FILE_VARIABLE, "")
        self._named = bool(named)
        self._path = Path(named) if named else None if home is None else home / FILE
        self._ring: Keyring | None = None if given is None else Keyring([Key(given)])

    @property
    def ring(self) -> Keyring:
        return self._load() if self._ring is None else self._ring

    def reread(self) -> Keyring:
        """The keys as they are now: another process may have rotated them."""
        return self.ring if self._path is None else self._load()

    def _load(self) -> Keyring:
        keys = self._read()
        for key in keys:  # KEY-2: the first of all secrets
            KNOWN.add(base64.b64encode(key).decode())
        self._ring = Keyring([Key(key) for key in keys])
        return self._ring

    def find(self, key_id: str, what: str) -> Key:
        """The key of that id, even if it is newer than what this process knew."""
        if self.absent:
            raise CredentialUnreadable(f"{what} was sealed with key {key_id}, but {self.where}")
        if key_id not in self.ring:
            self.reread()
        return self.ring.find(key_id, what)

    @property
    def absent(self) -> bool:
        """Whether there is no key: the home has none yet, or its file was lost."""
        return (
            self._ring is None
            and not (self._text or self._named)
            and self._path is not None
            and not self._path.exists()
        )

    @property
    def where(self) -> str:
        """Where a key that is missing should be, in words."""
        return (
            f"there is no key in {self._path}: put it back from your backup, or set {VARIABLE} or "
            f"{FILE_VARIABLE}; if it is lost: noetl credential rotate --lost"
        )

    def _read(self) -> list[bytes]:
        if self._text:
            return parsed(self._text, VARIABLE)
        if self._path is None:  # a home in memory: its key goes with it
            return [new_key()]
        try:
            return parsed(read_private(self._path), str(self._path))
        except FileNotFoundError:
            if self._named:
                raise SettingRefused(
                    f"{FILE_VARIABLE}: there is no file {self._path}; "
                    f"make one that holds {EXPECTED}"
                ) from None
        raise CredentialUnreadable(self.where)

    def make(self) -> None:
        """Make the home's key; of two processes that try at once both get the same."""
        assert self._path is not None, "a home in memory has its key from the start"
        private_folder(self._path.parent)
        draft = written(self._path, [new_key()])
        with suppress(FileExistsError):
            os.link(draft, self._path)
        draft.unlink()
        sync(self._path.parent)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """One process at a time changes the file: of two one would drop the other's new key."""
        if self._path is None or self._text:
            yield
            return
        private_folder(self._path.parent)
        folder = os.open(self._path.parent, os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield
        except BlockingIOError:
            raise SettingRefused("another process rotates the key right now") from None
        finally:
            os.close(folder)

    def grow(self) -> Keyring:
        """Put a new key first and keep the others: everything is still readable."""
        if self._text:
            raise SettingRefused(
                f"the key comes from {VARIABLE}, which this program cannot change: set it to the "
                f"new key, a comma and the old one, run this again, then drop the old one"
            )
        if self._path is None:
            self._ring = Keyring([Key(new_key()), *self.ring.all])
            return self._ring
        return self._rewrite([new_key(), *([] if self.absent else self._read())])

    @property
    def shared(self) -> bool:
        """Whether somebody gave the keys, as to all of a fleet; else they are the home's own."""
        return bool(self._text) or self._named

    @property
    def fixed(self) -> bool:
        """Whether the keys come from a variable, where somebody else puts them."""
        return bool(self._text)

    def shrink(self, needed: Collection[str] = ()) -> None:
        """Drop every key but the newest and those of the ids that something still needs."""
        if self._path is None or self._text:
            return
        newest, *others = self._read()
        self._rewrite([newest, *(key for key in others if Key(key).id in needed)])

    def _rewrite(self, keys: Sequence[bytes]) -> Keyring:
        """The file with these keys, on the disk before anything is sealed with one of them."""
        assert self._path is not None, "only a file is written"
        os.replace(written(self._path, keys), self._path)
        sync(self._path.parent)
        return self.reread()


def parsed(text: str, where: str) -> list[bytes]:
    """The keys in a text; the message about a wrong one does not repeat it."""
    keys = []
    for number, word in enumerate(text.replace(",", " ").split(), 1):
        try:
            key = base64.b64decode(word.replace("-", "+").replace("_", "/"), validate=True)
        except (binascii.Error, ValueError):
            key = b""
        if len(key) != LENGTH:
            raise SettingRefused(f"{where}: key {number} is not {EXPECTED}")
        keys.append(key)
    if not keys:
        raise SettingRefused(f"{where} is empty; expected {EXPECTED}")
    return keys


def read_private(path: Path) -> str:
    """The text of a file that only its owner may read."""
    try:
        with path.open() as file:
            mode = os.fstat(file.fileno()).st_mode & 0o077
            text = file.read()
    except FileNotFoundError:
        raise
    except OSError as wrong:
        raise SettingRefused(
            f"the key file {path} cannot be read: {wrong.strerror or wrong}"
        ) from None
    if mode:
        raise SettingRefused(
            f"the key file {path} can be read by others; run `chmod 600 {path}`, and rotate the "
            "key if somebody may have read it"
        )
    return text


def written(path: Path, keys: Sequence[bytes]) -> Path:
    """A private file beside `path` with these keys, on the disk before it takes its place."""
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    with os.fdopen(private_file(draft, os.O_WRONLY | os.O_TRUNC), "w") as file:
        file.write("".join(base64.b64encode(key).decode() + "\n" for key in keys))
        file.flush()
        os.fsync(file.fileno())
    return draft


def sync(folder: Path) -> None:
    """What was put into the folder stays there, whatever happens to the machine."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
