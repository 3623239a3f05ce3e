"""Where the servers are that a worker may reach over HTTP."""

from urllib.parse import urlsplit

from noetl.errors import SettingRefused

EXPECTED = "expected http://HOST:PORT, or several of them with commas between"


def addresses_in(text: str | None) -> list[str]:
    """The URLs of a setting, without a slash at their end."""
    urls = [url.strip().rstrip("/") for url in (text or "").split(",") if url.strip()]
    if not urls:
        raise SettingRefused(f"a worker needs NOETL_QUEUE or NOETL_SERVER; {EXPECTED}")
    for url in urls:
        if not is_address(url):
            raise SettingRefused(f"NOETL_SERVER has '{url[:100]}'; {EXPECTED}")
    return urls


def is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def headers_for(token: str | None) -> dict[str, str]:
    return {} if token is None else {"Authorization": f"Bearer {token}"}
