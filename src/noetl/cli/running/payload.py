"""What a run begins with: the payload of `--payload`, and `--set` over it (DOC-3)."""

from collections.abc import Sequence
from typing import Any

import click
import msgspec

from noetl.cli.source import FILE, PlaybookSource, read_source

SETS = click.option(
    "--set",
    "sets",
    multiple=True,
    metavar="NAME=VALUE",
    help="Set a key of the workload; VALUE is JSON, else text. May be repeated.",
)
CTX = click.option(
    "--ctx",
    multiple=True,
    metavar="NAME=VALUE",
    help="Set an initial key of `ctx`; VALUE is JSON, else text. May be repeated.",
)
PAYLOAD = click.option(
    "--payload",
    metavar="FILE",
    type=FILE,
    help="Read the payload from FILE (JSON or YAML), or - for standard input.",
)


def payload_of(file: str | None, sets: Sequence[str]) -> dict[str, Any]:
    """The payload: a JSON or YAML file, or standard input for `-`; `--set` wins over it."""
    payload = {} if file is None else mapping_in(read_source(file, at_most=-1))
    for word in sets:
        put(payload, *setting(word))
    return payload


def ctx_of(words: Sequence[str]) -> dict[str, Any]:
    """The initial `ctx` (SCOPE-4)."""
    ctx: dict[str, Any] = {}
    for word in words:
        put(ctx, *setting(word, "--ctx"))
    return ctx


def put(payload: dict[str, Any], keys: list[str], value: Any) -> None:
    """Set a value inside mappings; what stands in the way of one is replaced by it."""
    for key in keys[:-1]:
        below = payload.get(key)
        if not isinstance(below, dict):
            below = payload[key] = {}
        payload = below
    payload[keys[-1]] = value


def setting(word: str, option: str = "--set") -> tuple[list[str], Any]:
    """`a.b=1` as keys and value; the value is JSON where it parses, else text."""
    name, sign, text = word.partition("=")
    keys = name.split(".")
    if not sign or not all(keys):
        raise click.UsageError(
            f"{option} expects NAME=VALUE, got '{word}'; "
            f"for example {option} region=eu or {option} a.b=1"
        )
    return keys, value_of(text)


def value_of(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text


def mapping_in(source: PlaybookSource) -> dict[str, Any]:
    """The mapping in a file of JSON or YAML; anything else is refused with what was found."""
    if not source.content.strip():
        raise click.UsageError(f"--payload expects a mapping in '{source.name}', got nothing")
    try:
        value = msgspec.json.decode(source.content)
    except (msgspec.DecodeError, RecursionError):
        value = yaml_in(source)
    if not isinstance(value, dict):
        raise click.UsageError(
            f"--payload expects a mapping in '{source.name}', got {type(value).__name__}; "
            'write {"name": value, …}'
        )
    return value


def yaml_in(source: PlaybookSource) -> Any:
    from noetl.playbook.yaml_checks import UnreadableText
    from noetl.playbook.yaml_text import read_yaml

    try:
        tree = read_yaml(source.content)
    except UnreadableText as refused:
        raise click.UsageError(
            f"--payload '{source.name}', line {refused.line}: {refused.message}"
        ) from None
    value = tree.value(tree.root)
    for fault in tree.faults:
        raise click.UsageError(f"--payload '{source.name}': {fault.message}")
    return value
