"""Routes of values: templates tried on what was recorded, and what is stored outside the log."""

from collections.abc import AsyncIterator
from typing import Annotated, Any

from litestar import Response
from litestar.params import FromPath, JSONBody, QueryParameter
from litestar.response import Stream

from noetl.api import types as t
from noetl.api.answers import NEVER_KEPT, answered_aside
from noetl.api.context import ApiContext
from noetl.api.executions import known
from noetl.errors import BodyLost, ServerRefused
from noetl.masking import KNOWN
from noetl.messages.codec import encode_shown
from noetl.messages.reference import Reference
from noetl.messages.references import chunks_of, is_chunked
from noetl.messages.size import surely_fits
from noetl.ports.large import LARGE, encoded, off_loop
from noetl.ports.result_store import KEY, opened
from noetl.server.replay import replay
from noetl.server.views.trials import names_in, outcome_at, scope_of, try_template

LARGEST = 32 * 1024 * 1024
"""Bytes of a stored value that a preview reads; larger ones can be downloaded."""
SHOWN = 100_000
"""Characters of a value that are shown where it is no list."""
Rows = Annotated[int, QueryParameter(ge=1, le=1000, description="Elements of a list to show.")]
Hint = Annotated[
    str | None, QueryParameter(max_length=200, description="`schema_hint` of the reference.")
]
KINDS = {dict: "object", list: "list", str: "string", bool: "boolean", type(None): "null"}


class ValuesRoutes:
    """Answers for whoever looks at values."""

    def __init__(self, context: ApiContext) -> None:
        self._plane = context.plane

    async def render(
        self, execution_id: FromPath[str], data: JSONBody[t.TemplateRequest]
    ) -> Response[t.TemplateTried]:
        """What a template comes to on what the execution has recorded; nothing is changed."""
        plane, load = self._plane, self._plane.bodies.load
        execution, plan = await plane.state(known(execution_id))
        log = plane.storage.log
        if data.seq is not None:
            execution, _ = await replay(
                log, execution_id, plan, load, from_snapshot=False, until=data.seq
            )
        scope = scope_of(execution)
        if data.event is not None:
            scope |= await outcome_at(log, execution_id, data.event)
        tried = await try_template(data.template, scope, plane.bodies.look_into)
        value, size, cut = await clipped(tried.value)
        return await answered_aside(
            t.TemplateTried(
                ok=tried.error is None,
                value=value,
                kind=kind_of(tried.value),
                size=size,
                cut=cut,
                error=tried.error,
                meant=tried.meant,
                names=names_in(scope),
            )
        )

    async def preview(
        self,
        execution_id: FromPath[str],
        checksum: FromPath[str],
        rows: Rows = 100,
        hint: Hint = None,
    ) -> Response[t.BodyPreview]:
        """The beginning of a value that is stored outside the log."""
        value = await self._read(key_of(execution_id, checksum), hint)
        whole = not is_chunked(hint)
        while is_chunked(hint):  # the first chunk of a chunk has the first elements
            first = first_chunk(value)
            hint, value = first.schema_hint, await self._read(first.key, first.schema_hint)
        if isinstance(value, list):
            shown, cut = value[:rows], len(value) > rows
        else:
            shown, _, cut = await clipped(value)
        counted = whole and isinstance(value, dict | list)
        return await answered_aside(
            t.BodyPreview(
                kind=kind_of(value),
                count=len(value) if counted else None,
                value=shown,
                cut=cut or not whole,
            )
        )

    async def download(self, execution_id: FromPath[str], checksum: FromPath[str]) -> Stream:
        """The whole JSON of a value that is stored outside the log, as a file."""
        key = key_of(execution_id, checksum)
        pieces = without_secrets(self._plane.results.read(key))
        try:
            first = await anext(pieces, b"")
        except FileNotFoundError:
            raise gone(key) from None

        async def sent() -> AsyncIterator[bytes]:
            yield first
            async for piece in pieces:
                yield piece

        named = f'attachment; filename="{execution_id}-{checksum[:12]}.json"'
        headers = {**NEVER_KEPT, "content-disposition": named, "x-content-type-options": "nosniff"}
        return Stream(sent(), media_type="application/json", headers=headers)

    async def _read(self, key: str, hint: str | None) -> Any:
        """The value; its size is not asked of whoever asks for it."""
        refuse_strange(key)
        results, body = self._plane.results, bytearray()
        try:
            async for piece in results.read(key):
                body += piece
                if len(body) > LARGEST:
                    raise too_large()
        except FileNotFoundError:
            raise gone(key) from None
        reference = Reference(results.name, key, len(body), key[-64:], schema_hint=hint)
        return await off_loop(len(body), opened, reference, bytes(body))


def key_of(execution_id: str, checksum: str) -> str:
    """The key of a stored value, if it can be one."""
    key = f"{known(execution_id)}/{checksum}"
    refuse_strange(key)
    return key


def refuse_strange(key: str) -> None:
    """What is no key never reaches a store, where it may be a path."""
    if KEY.fullmatch(key) is None:
        raise ServerRefused("expected the checksum of a stored value", code="malformed", status=400)


def first_chunk(value: Any) -> Reference:
    """Whoever asks says that it is in chunks, and whoever made the value says where these are."""
    try:
        found = chunks_of(value)[0]
    except (BodyLost, IndexError):
        found = None
    if found is None:
        raise ServerRefused("the value has no chunks", code="malformed", status=400)
    return found


def too_large() -> ServerRefused:
    words = f"the value has more than {LARGEST:,} bytes; download it"
    return ServerRefused(words, code="too_large", status=413)


def gone(key: str) -> BodyLost:
    return BodyLost(f"the value {key} is not stored any more")


def kind_of(value: Any) -> str:
    return KINDS.get(type(value), "reference" if isinstance(value, Reference) else "number")


async def clipped(value: Any) -> tuple[Any, int, bool]:
    """A value as it is shown, the size of its JSON, and whether it was cut."""
    text = encode_shown(value) if surely_fits(value, LARGE) else await encoded(value)
    if len(text) <= SHOWN:
        return value, len(text), False
    return text[:SHOWN].decode(errors="ignore"), len(text), True


async def without_secrets(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """KEY-2, piece by piece: as much is held back as a secret that has begun could still need."""
    held = b""
    async for piece in pieces:
        if not KNOWN and not held:
            yield piece
            continue
        seen = KNOWN.masked_json(held + piece)
        ready = max(0, len(seen) - KNOWN.longest + 1)
        held = seen[ready:]
        if ready:
            yield seen[:ready]
    if held:
        yield held
