"""Routes for texts that are being written: what editors ask, answered as `noetl lsp` does."""

import msgspec
from litestar import Response

from noetl.api import types as t
from noetl.api.answers import answered_aside
from noetl.api.context import ApiContext, Asking
from noetl.api.refusals import MOST, told_of
from noetl.api.texts import decoded, refuse_large, text_in
from noetl.errors import PlaybookRejected, ServerRefused
from noetl.node.testing.runs import PlaybookTests
from noetl.playbook.dialects.migrate import Migrated, migrate
from noetl.playbook.dialects.rewrite import REASONS
from noetl.playbook.editing.answers import Completion, OpenDocument
from noetl.playbook.editing.fixes import MIGRATES, end_of, fix_of
from noetl.playbook.finding import Finding
from noetl.playbook.load import Loaded, examine
from noetl.ports.large import DRAFTS
from noetl.server.registering import examined
from noetl.server.views.outline import drawn
from noetl.tools.plugins import KnownKinds

TRIES = 12
"""How often a text is read to find out where in it the cursor is."""


class EditingRoutes:
    """Answers for whoever writes a playbook. Nothing here changes anything."""

    def __init__(self, context: ApiContext) -> None:
        self._context = context
        self._storage = context.plane.storage
        self._tests = PlaybookTests(context.plane.settings.bounds)

    async def check(self, request: Asking) -> Response[t.TextChecked]:
        """All findings with their fixes, and the steps as they are drawn."""
        text = refuse_large((await text_in(request, t.ValidateRequest)).text)
        loaded = await examined(self._storage, text, DRAFTS.read)
        return await answered_aside(await DRAFTS.read(len(text), looked_at, text, loaded))

    async def complete(self, request: Asking) -> Response[t.TextOffers]:
        """What may be written at the cursor: keys, words, steps, names in templates."""
        asked = await decoded(request, t.CursorRequest)
        text = refuse_large(asked.text)
        known = OpenDocument(KnownKinds())
        size = TRIES * len(text)
        found = await DRAFTS.read(size, known.offers, text, asked.line, asked.column)
        return await answered_aside(t.TextOffers(offers=[offer_of(one) for one in found]))

    async def about(self, request: Asking) -> Response[t.WordAbout]:
        """The documentation of the word at the cursor."""
        asked = await decoded(request, t.CursorRequest)
        text = refuse_large(asked.text)
        known = OpenDocument(KnownKinds())
        size = TRIES * len(text)
        words = await DRAFTS.read(size, known.hover, text, asked.line, asked.column)
        return await answered_aside(t.WordAbout(about=words))

    async def translate(self, request: Asking) -> Response[t.TextTranslated]:
        """The text in the canonical language, with every rewrite explained (DIA)."""
        text = refuse_large((await text_in(request, t.ValidateRequest)).text)
        made = await DRAFTS.read(len(text), migrate, text, KnownKinds())
        return await answered_aside(translated(made))

    async def test(self, request: Asking) -> Response[t.TestsRun]:
        """Run the tests of a playbook: prepared outcomes replace tools, and nothing is kept."""
        asked = await decoded(request, t.TestsRequest)
        text, tests = refuse_large(asked.text), refuse_large(asked.tests)
        loaded = await examined(self._storage, text, DRAFTS.read)
        if loaded.playbook is None:
            raise PlaybookRejected(loaded.findings)
        done = await self._context.unless_gone(request, self._tests.run(text, tests))
        if done is None:
            raise ServerRefused("the server stops; try again", code="stopping", status=503)
        passed = sum(one.ok for one in done)
        return await answered_aside(
            t.TestsRun(passed=passed, failed=len(done) - passed, tests=done)
        )


def looked_at(text: str, loaded: Loaded) -> t.TextChecked:
    rows = text.split("\n")
    model = loaded.playbook or examine(text, KnownKinds())[1]
    outline = drawn(model) if model is not None else None
    return t.TextChecked(
        findings=[fault_of(one, rows) for one in loaded.findings[:MOST]],
        more=max(0, len(loaded.findings) - MOST),
        older=any(MIGRATES in one.hint for one in loaded.findings),
        path=getattr(model or loaded.trigger, "path", None),
        outline=outline,
    )


def fault_of(finding: Finding, rows: list[str]) -> t.FoundFault:
    place = finding.line - 1
    row = rows[place].rstrip("\r") if 0 <= place < len(rows) else ""
    fix = fix_of(finding, rows)
    made = None if fix is None else t.TextEdit(**fix._asdict())
    return t.FoundFault(finding=finding, end=end_of(row, finding.column - 1) + 1, fix=made)


def offer_of(one: Completion) -> t.TextOffer:
    entry = one.entry
    return t.TextOffer(
        name=entry.name,
        summary=entry.summary,
        about=entry.about,
        sort=one.sort,
        insert=one.insert,
        back=one.back,
    )


def translated(made: Migrated) -> t.TextTranslated:
    findings, more = told_of(made.findings)
    return t.TextTranslated(
        text=made.text,
        changed=made.changed,
        complete=made.complete,
        rewrites=[
            t.ExplainedRewrite(**msgspec.structs.asdict(one), why=REASONS.get(one.code, ""))
            for one in made.rewrites
        ],
        findings=findings,
        more=more,
    )
