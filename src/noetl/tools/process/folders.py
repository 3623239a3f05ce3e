"""Where children work: folders of one tool, which a later one removes if this one is killed."""

import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import IO

LOCK = "lock"


class Folders:
    """A folder in the system's place for such; it is locked as long as the process lives."""

    def __init__(self, kind: str) -> None:
        self._prefix = f"noetl-{kind}-"
        self._own: Path | None = None
        self._lock: IO[bytes] | None = None

    def new(self) -> str:
        """An empty folder for one child; raises OSError."""
        if self._own is None:
            remove_abandoned(Path(tempfile.gettempdir()), self._prefix)
            self._own = Path(tempfile.mkdtemp(prefix=self._prefix))
            # Locked before it has its name, so that nobody takes it for an abandoned one.
            self._lock = open(self._own / "new", "wb")  # noqa: SIM115
            fcntl.flock(self._lock, fcntl.LOCK_EX)
            os.rename(self._own / "new", self._own / LOCK)
        return tempfile.mkdtemp(dir=self._own)

    def close(self) -> None:
        """Remove all; those of children must be gone."""
        if self._own is not None and self._lock is not None:
            shutil.rmtree(self._own, ignore_errors=True)
            self._lock.close()
            self._own = self._lock = None


def remove_abandoned(place: Path, prefix: str) -> None:
    """What killed workers left behind: their locks are free."""
    for folder in place.glob(f"{prefix}*"):
        with suppress(OSError), open(folder / LOCK, "rb") as lock:
            if os.fstat(lock.fileno()).st_uid == os.getuid():
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
