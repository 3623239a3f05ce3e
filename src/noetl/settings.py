"""One frozen object with every setting: flags, then the environment, then `noetl.toml`."""

import re
from collections.abc import Callable, Mapping
from math import inf
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec

from noetl.errors import SettingRefused
from noetl.masking import MASK, without_password
from noetl.tools.bounds import Bounds, Denied, Namespaces
from noetl.tools.environment import VARIABLES, mask

HOME = ".noetl"
"""The usual home, in the folder of the user."""
FILE = "noetl.toml"
"""Looked for in the folder in which a command is called; NOETL_CONFIG names another file."""
LONGEST_FILE = 1024 * 1024
"""Bytes of one: it may come with a folder of somebody else."""
TABLES = ("contexts",)
"""Tables of the file that are no settings: servers by name (`noetl context`)."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What can be set; SETTINGS says of each field how it is read and what it means."""

    home: Path
    slots: int = 100
    run_ahead: bool = True
    retention_days: float | None = None
    retention: str | None = None
    db: str | None = None
    queue: str | None = None
    results: str | None = None
    host: str = "127.0.0.1"
    port: int = 8765
    auth: bool = True
    pool: str = "default"
    concurrency: int = 100
    lease_ttl: float = 15.0
    drain: float = 600.0
    server: str | None = None
    token: str | None = None
    context: str | None = None
    files: Path | None = None
    namespaces: Namespaces = "auto"
    libs_build: bool = False
    http_deny: Denied = "link_local"

    @property
    def bounds(self) -> Bounds:
        """What concerns tools."""
        files = None if self.files is None else str(self.files.resolve())
        named = (VARIABLES.get("NOETL_KEY_FILE"), settings_file(VARIABLES))
        usual = Path.home() / HOME  # a project may name another one: the user's own has keys, too
        known = (usual,) if usual.is_dir() else ()
        private = (self.home, *(Path(one) for one in named if one), *known, *self._archives())
        return Bounds(
            files=files,
            private=tuple(dict.fromkeys(str(own.resolve()) for own in private)),
            namespaces=self.namespaces,
            build=self.libs_build,
            deny=self.http_deny,
        )

    def _archives(self) -> list[Path]:
        """Folders that keep the logs of removed executions (KEEP-1)."""
        if self.retention is None:
            return []
        from noetl.server.policies import folders_of, policies_of

        return folders_of(policies_of(self.retention))

    def mask(self) -> None:
        """KEY-2: what opens the database, the queue or a server is a secret like any other."""
        for field in ("db", "queue", "token"):
            mask(getattr(self, field))


class Setting(msgspec.Struct, frozen=True):
    """How the text of a setting becomes its value."""

    read: Callable[[str], Any]
    expected: str
    means: str
    shown: Literal["plain", "url", "secret"] = "plain"
    """What of it may be printed: all, all but the password in it, or nothing."""
    folder: Literal["never", "any", "inside"] | tuple[Any, ...] = "never"
    """
    What the file of the current folder may set it to (decision 0072): nothing, anything, a path
    inside that folder, or one of these values, which protect no less than the default.
    """


class Reading(msgspec.Struct, frozen=True):
    """The settings, and of each where it comes from."""

    settings: Settings
    origins: dict[str, str]
    """Field → `flag`, `NOETL_…`, the path of the file, or `default`."""
    refused: str | None = None
    """What the file of the folder may not set, in words; such values are not in `settings`."""


def _from(
    low: float, high: float = inf, *, kind: type[int] | type[float] = int
) -> Callable[[str], float]:
    """Numbers from `low` to `high`; infinity is none."""

    def read(text: str) -> float:
        value = kind(text)
        if not low <= value <= high or value == inf:
            raise ValueError
        return value

    return read


def _switch(text: str) -> bool:
    return {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}[
        text.lower()
    ]


def _word(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", text):
        raise ValueError
    return text


def _namespaces(text: str) -> Namespaces:
    words: dict[str, Namespaces] = {"auto": "auto", "demand": "demand", "off": "off"}
    return words[text.lower()]


def _denied(text: str) -> Denied:
    words: dict[str, Denied] = {"link_local": "link_local", "private": "private", "none": "none"}
    return words[text.lower().replace("-", "_")]


def _url(*schemes: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        scheme, separator, rest = text.partition("://")
        if not separator or scheme not in schemes or not rest.strip("/"):
            raise ValueError
        for address in re.split(r",(?=\w+://)", text):
            _check(address)
        return text.rstrip("/") if scheme in ("http", "https") else text

    return read


def _check(address: str) -> None:
    """A password with signs that must be encoded would be taken for host, port or database."""
    parts = urlsplit(address)
    _ = parts.port
    if "@" in parts.path + parts.fragment or ("@" in parts.query and "@" not in parts.netloc):
        raise ValueError


def _store(text: str) -> str:
    return text if text in ("files", "postgres", "nats") else _url("s3", "gs")(text)


def _policies(text: str) -> str:
    from noetl.server.policies import policies_of

    policies_of(text)
    return text


SETTINGS: dict[str, Setting] = {
    "home": Setting(Path, "a folder", "where the log, results and caches are stored"),
    "slots": Setting(
        _from(1),
        "a whole number >= 1",
        "how many tool calls `noetl run` runs at once",
        folder="any",
    ),
    "run_ahead": Setting(
        _switch,
        "1 or 0",
        "whether steps without side effects may run before the decision for them is committed",
        folder="any",
    ),
    "retention_days": Setting(
        _from(0, kind=float),
        "a number of days >= 0",
        "ended executions older than this are removed with their results; unset: all are kept",
    ),
    "retention": Setting(
        _policies,
        "policies such as '30d status=completed path=etl/* archive=results; 365d'",
        "which ended executions servers remove, and when ([retention](retention.md)); they come"
        " before `retention_days`",
    ),
    "db": Setting(
        _url("postgresql", "postgres"),
        "postgresql://USER:PASSWORD@HOST/NAME",
        "where servers store the log and commands read it; unset: SQLite in the home",
        "url",
    ),
    "queue": Setting(
        _url("nats", "tls", "ws", "wss"),
        "nats://HOST:PORT",
        "how servers wake workers; unset: workers poll the server",
        "url",
    ),
    "results": Setting(
        _store,
        "files, postgres, nats, s3://BUCKET/PREFIX or gs://BUCKET/PREFIX",
        "where large results are stored; unset: next to the log",
    ),
    "host": Setting(
        str, "an address", "the address a server listens on; any other than loopback needs `auth`"
    ),
    "port": Setting(
        _from(0, 65535),
        "a port, 0 to 65535",
        "the port a server listens on; 0: any free port",
        folder="any",
    ),
    "auth": Setting(_switch, "1 or 0", "whether a server requires tokens", folder=(True,)),
    "pool": Setting(_word, "a name", "the pool a worker belongs to", folder="any"),
    "concurrency": Setting(
        _from(1), "a whole number >= 1", "how many parts a worker runs at once", folder="any"
    ),
    "lease_ttl": Setting(
        _from(1, kind=float),
        "a number of seconds >= 1",
        "how long a worker keeps its work without renewing the lease, in seconds",
        folder="any",
    ),
    "drain": Setting(
        _from(0, kind=float),
        "a number of seconds >= 0",
        "how long a stopping worker lets its tasks run, in seconds; tasks that take longer are"
        " returned and run again elsewhere",
        folder="any",
    ),
    "server": Setting(
        _url("http", "https"),
        "http://HOST:PORT",
        "the server that commands talk to",
        "url",
        folder="any",
    ),
    "token": Setting(
        str,
        "a token",
        "the token that commands and workers send to the server",
        "secret",
        folder="any",
    ),
    "context": Setting(
        _word,
        "a name",
        "the named server that commands talk to; `local` means the home",
        folder="any",
    ),
    "files": Setting(
        Path,
        "a folder",
        "the folder that tools can access; unset: the folder of the playbook, and more"
        " ([trust model](trust-model.md#files))",
        folder="inside",
    ),
    "namespaces": Setting(
        _namespaces,
        "auto, demand or off",
        "whether processes of tasks are isolated by namespaces or Landlock: if the kernel can"
        " (`auto`), always, or else they do not run (`demand`), or never (`off`)",
        folder=("auto", "demand"),
    ),
    "libs_build": Setting(
        _switch,
        "1 or 0",
        "whether `libs` of python tasks may be built from source, which runs their code",
        folder=(False,),
    ),
    "http_deny": Setting(
        _denied,
        "link_local, private or none",
        "addresses that `http` tasks cannot reach: link-local ones, where clouds provide"
        " credentials; or all private ones; or none",
        folder=("link_local", "private"),
    ),
}


def read_settings(
    environment: Mapping[str, str] = VARIABLES, *, flags: Mapping[str, Any] | None = None
) -> Settings:
    """The settings of this process."""
    return read_with_origins(environment, flags=flags).settings


def read_with_origins(
    environment: Mapping[str, str] = VARIABLES,
    *,
    flags: Mapping[str, Any] | None = None,
    folder: Path | None = None,
    looking: bool = False,
) -> Reading:
    """
    The settings, each from the first place that has it; an empty variable has nothing.

    `looking`: what the file of the folder may not set is told in the answer, and raises nothing.
    """
    found: dict[str, Any] = {"home": Path.home() / HOME}
    origins = dict.fromkeys(SETTINGS, "default")
    file = settings_file(environment, folder)
    in_file = {} if file is None else values_in(file)
    for field in SETTINGS:
        name = f"NOETL_{field.upper()}"
        if flags is not None and flags.get(field) is not None:
            found[field] = read_setting(field, f"--{field.replace('_', '-')}", str(flags[field]))
            origins[field] = "flag"
        elif environment.get(name):
            found[field] = read_setting(field, name, environment[name])
            origins[field] = name
        elif field in in_file:
            found[field] = in_file[field]
            origins[field] = str(file)
    refused = None
    if file is not None and not environment.get("NOETL_CONFIG"):
        refused = _take_out_what_is_the_users(found, origins, file)
    if refused is not None and not looking:
        raise SettingRefused(refused)
    return Reading(Settings(**found), origins, refused)


def _take_out_what_is_the_users(
    found: dict[str, Any], origins: dict[str, str], file: Path
) -> str | None:
    """The file of a folder often comes with the playbooks in it, and speaks for their author."""
    from_file = [field for field, origin in origins.items() if origin == str(file)]
    fields = [field for field in from_file if not folder_may(field, found[field], file.parent)]
    for field in fields:
        del found[field]
        origins[field] = "default"
    if not fields:
        return None
    found.setdefault("home", Path.home() / HOME)
    variables = ", ".join(f"NOETL_{field.upper()}" for field in fields)
    return (
        f"{file}: the file of a folder cannot set {', '.join(fields)} so: it may come with "
        "playbooks of others, and this would move data or take away a protection; set "
        f"{variables}, or, if the file is yours, NOETL_CONFIG={file}"
    )


def folder_may(field: str, value: Any, folder: Path) -> bool:
    """Whether the file of a folder may set it to this."""
    allowed = SETTINGS[field].folder
    if allowed == "inside":
        return bool(value.resolve().is_relative_to(folder.resolve()))
    return allowed == "any" or (isinstance(allowed, tuple) and value in allowed)


def read_setting(field: str, name: str, text: str) -> Any:
    """The value of a setting that was written so, in the place of that name."""
    setting = SETTINGS[field]
    try:
        return setting.read(text)
    except (ValueError, KeyError):
        got = "something else" if setting.shown == "secret" else repr(shown(field, text))
        raise SettingRefused(f"{name} must be {setting.expected}, got {got}") from None


# ── the file ─────────────────────────────────────────────────────────────────────────────────


def settings_file(environment: Mapping[str, str], folder: Path | None = None) -> Path | None:
    """The file that holds settings for this call, where there is one."""
    named = environment.get("NOETL_CONFIG")
    if named:
        if not Path(named).is_file():
            raise SettingRefused(f"NOETL_CONFIG names '{named}', which is not a file")
        return Path(named)
    file = (Path.cwd() if folder is None else folder) / FILE
    return file if file.is_file() else None


def document_in(file: Path) -> dict[str, Any]:
    """What a TOML file holds."""
    import tomllib

    try:
        with file.open("rb") as opened:
            content = opened.read(LONGEST_FILE + 1)
        if len(content) > LONGEST_FILE:
            raise ValueError(f"it has more than {LONGEST_FILE:,} bytes")
        return tomllib.loads(content.decode())
    except (OSError, ValueError, RecursionError) as wrong:
        raise SettingRefused(f"cannot read {file}: {wrong}; it must be TOML") from None


def values_in(file: Path) -> dict[str, Any]:
    """The settings in a file; a key that is none is refused, with the nearest that is one."""
    values = {}
    for key, value in document_in(file).items():
        if key in TABLES:
            continue
        if key not in SETTINGS:
            from difflib import get_close_matches

            close = get_close_matches(key, SETTINGS, n=1)
            hint = f"did you mean '{close[0]}'?" if close else f"there are: {', '.join(SETTINGS)}"
            raise SettingRefused(f"{file}: there is no setting '{key}'; {hint}")
        if not isinstance(value, str | int | float):
            expected = SETTINGS[key].expected
            raise SettingRefused(f"{file}: {key} must be {expected}, got a {type(value).__name__}")
        text = str(int(value)) if isinstance(value, bool) else str(value)
        values[key] = read_setting(key, f"{file}: {key}", text)
    for key in values.keys() & {"home", "files"}:
        values[key] = file.parent / values[key]  # a relative one is meant from the file
    return values


# ── what may be printed ──────────────────────────────────────────────────────────────────────


def shown(field: str, value: Any) -> Any:
    """The value of a setting without the secrets in it."""
    how = SETTINGS[field].shown
    if value is None or how == "plain":
        return str(value) if isinstance(value, Path) else value
    return MASK if how == "secret" else without_password(str(value))
