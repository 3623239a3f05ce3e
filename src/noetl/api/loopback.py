"""Which names and addresses mean this machine alone."""

from urllib.parse import urlsplit

LOOPBACK = ("localhost", "::1")


def host_in(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def is_loopback(host: str) -> bool:
    """Whether a name or address means this machine alone."""
    return host in LOOPBACK or (host.startswith("127.") and host.replace(".", "").isdecimal())
