"""Executions that use a secret, and the search for it wherever it could have come out."""

import asyncio
import base64
import html
import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import markupsafe
import msgspec
from requests.utils import requote_uri
from tests.system.program import Answer, noetl

from noetl.messages import events as e
from noetl.messages.codec import decode_events
from noetl.messages.reference import Reference
from noetl.node.local import LocalNode
from noetl.settings import Settings

SECRET = 'pl4nted/s3cr3t+"ü" with blanks'
HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: t, path: t}\n"


class Ran(msgspec.Struct, frozen=True):
    """An execution that has ended."""

    status: str
    ctx: dict[str, Any]
    error: dict[str, Any] | None
    events: list[e.Event]

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    def result(self, task: str) -> Any:
        return next(done.outcome["result"] for done in self.of(e.TaskDone) if done.task == task)


def run(text: str, home: Path) -> Ran:
    async def whole() -> Ran:
        local = await LocalNode.open(Settings(home=home))
        try:
            active = await local.run_text(HEAD + text, folder=str(home), payload={})
            await active.finished
            execution = active.execution
            rows = await local.storage.log.read(execution.execution_id)
            events = [event for row in rows for event in decode_events(row.events)]
            return Ran(execution.status, execution.ctx, execution.error, events)
        finally:
            await local.close()

    return asyncio.run(whole())


def is_secret(value: Any) -> bool:
    return isinstance(value, Reference) and value.sealed is not None


def register(home: Path, name: str, kind: str, fields: dict[str, Any]) -> None:
    told = noetl(
        *("credential", "add", name, "--kind", kind, "--stdin"),
        stdin=json.dumps(fields).encode(),
        NOETL_HOME=str(home),
    )
    assert told.code == 0, told.err


def forms(value: str) -> dict[str, bytes]:
    """How a secret might show up."""
    plain = value.encode()
    shown = {
        "plain": plain,
        "json": json.dumps(value)[1:-1].encode(),
        "json, raw": msgspec.json.encode(value)[1:-1],
        "twice json": json.dumps(json.dumps(value))[3:-3].encode(),
        "url": quote(value, safe="").encode(),
        "url, path": quote(value).encode(),
        "url, as requests writes it": requote_uri(value).encode(),
        "thrice json": json.dumps(json.dumps(json.dumps(value)))[7:-7].encode(),
        "html": html.escape(value).encode(),
        "html, quotes left": html.escape(value, quote=False).encode(),
        "html of templates": str(markupsafe.escape(value)).encode(),
        "html, ascii": html.escape(value).encode("ascii", "xmlcharrefreplace"),
        "hex": plain.hex().encode(),
        "hex, capitals": plain.hex().upper().encode(),
        "repr": ascii(value)[1:-1].encode(),
        "repr of bytes": repr(plain)[2:-1].encode(),
        "base64": base64.b64encode(plain)[:-4],
        "base64 after one": base64.b64encode(b"x" + plain)[2:-4],
        "base64 after two": base64.b64encode(b"xx" + plain)[3:-4],
    }
    return {name: form for name, form in shown.items() if len(form) > 5}


def finds(value: str, home: Path, *answers: Answer) -> list[str]:
    """Where the secret was found: in a file of the home, or in what a program said."""
    places = {str(path): path.read_bytes() for path in home.rglob("*") if path.is_file()}
    for number, answer in enumerate(answers):
        places[f"answer {number}"] = (answer.out + answer.err).encode()
    assert places
    return [
        f"{name} in {place}"
        for place, content in places.items()
        for name, form in forms(value).items()
        if form in content
    ]
