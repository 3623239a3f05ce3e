"""The variables of this process, and how those that open NoETL itself are kept from tasks."""

import os
from collections import ChainMap
from collections.abc import Mapping

from noetl.masking import KNOWN

OWN = "NOETL_"
"""How the names of our own variables begin; no provider hands one of them to a playbook."""
SECRET = ("NOETL_KEY", "NOETL_DB", "NOETL_QUEUE", "NOETL_TOKEN")
"""Those whose values open something."""
DUMPABLE = 4
"""Of prctl(2)."""

_taken: dict[str, str] = {}
VARIABLES: Mapping[str, str] = ChainMap(_taken, os.environ)
"""What this process was started with; `os.environ` is what others may find of it."""


def withdraw(*, mask_all: bool) -> None:
    """
    Nobody but root may look into this process any more, and its environment holds no secret: not
    for its children, nor in /proc. Only this module knows them from here on (trust model).
    """
    # Clients of HTTP would show the passwords of this user's .netrc to whoever a playbook names.
    os.environ["NETRC"] = os.devnull
    if not any(secret in os.environ for secret in SECRET):
        _hide()
        return
    import ctypes

    libc = ctypes.CDLL(None)
    libc.prctl(DUMPABLE, 0, 0, 0, 0)
    block = ctypes.POINTER(ctypes.c_void_p).in_dll(libc, "environ")
    for number in range(len(os.environ) + 1):
        at = block[number]
        if at is None:
            break
        name, _, value = ctypes.string_at(at).partition(b"=")
        if name.decode("utf-8", "replace") in SECRET:  # the kernel shows these bytes in /proc
            ctypes.memset(at + len(name) + 1, 0, len(value))
    for secret in SECRET:
        if secret in os.environ:
            _taken[secret] = os.environ.pop(secret)
            mask(_taken[secret] if mask_all else None)


def _hide() -> None:
    """The same call as by ctypes, of which little is needed where nothing is to be erased."""
    import _ctypes

    everything = _ctypes.dlopen(None, os.RTLD_NOW)  # type: ignore[arg-type]
    _ctypes.call_function(_ctypes.dlsym(everything, "prctl"), (DUMPABLE, 0, 0, 0, 0))


def mask(value: str | None) -> None:
    """KEY-2: a key, a token, or an address with a password in it; an address alone is no secret."""
    if not value:
        return
    if "://" not in value:
        for word in value.replace(",", " ").split():
            KNOWN.add(word)
        return
    from urllib.parse import unquote, urlsplit

    parts = urlsplit(value)
    if parts.password:
        KNOWN.add(value)
        KNOWN.add(f"{parts.username}:{parts.password}")
        # `postgres:postgres@` is a word that stands everywhere, and no secret on its own.
        if parts.password not in (parts.username, parts.hostname, parts.path.strip("/")):
            KNOWN.add(unquote(parts.password))
