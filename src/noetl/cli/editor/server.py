"""
The language server: what an editor says and asks over stdio (LSP), answered by `answers`.

Nothing is computed on the event loop: checks and answers run in threads. A document is checked by
one thread at a time, always in its newest version, so that a check that is slower than the typing
skips what was typed meanwhile.
"""

import asyncio
import re
from collections.abc import Sequence
from typing import Any

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer
from pygls.workspace import ServerTextPosition, ServerTextRange, TextDocument

from noetl import __version__
from noetl.playbook.codes import CODES
from noetl.playbook.dialects.migrate import migrate
from noetl.playbook.editing.answers import Completion, OpenDocument
from noetl.playbook.editing.fixes import MIGRATES, Fix, end_of, fix_of
from noetl.playbook.finding import Finding, Place
from noetl.tools.plugins import KnownKinds

SEVERITIES = {
    "error": lsp.DiagnosticSeverity.Error,
    "warning": lsp.DiagnosticSeverity.Warning,
}
SORTS = {
    "key": lsp.CompletionItemKind.Property,
    "value": lsp.CompletionItemKind.EnumMember,
    "name": lsp.CompletionItemKind.Variable,
}
TRIGGERS = [".", " ", "{", "|", "-"]
PLAYBOOK = re.compile(r"^(apiVersion:.*noetl|kind:\s*[\"']?Playbook|workflow:)", re.MULTILINE)
"""What a YAML file must say somewhere before its faults are told: editors send them all."""


class PlaybookServer(LanguageServer):
    """The documents that are open, and the checks that run."""

    def __init__(self) -> None:
        super().__init__("noetl", __version__)
        self.kinds = KnownKinds()
        self.documents: dict[str, OpenDocument] = {}
        self.checking: dict[str, asyncio.Task[None]] = {}

    def opened(self, uri: str) -> tuple[OpenDocument, TextDocument]:
        """A document that the editor has open: files are not read, and no pipe is waited for."""
        if uri not in self.workspace.text_documents:
            raise ValueError(f"{uri} is not open")
        known = self.documents.setdefault(uri, OpenDocument(self.kinds))
        return known, self.workspace.get_text_document(uri)

    def check_soon(self, uri: str) -> None:
        """Check the document unless that is under way: then its newest version follows."""
        if uri not in self.checking:
            self.checking[uri] = asyncio.ensure_future(self._check(uri))

    async def _check(self, uri: str) -> None:
        try:
            checked: int | None = None
            while uri in self.documents:
                known, document = self.opened(uri)
                version, text = document.version, document.source
                if version == checked is not None:
                    return
                found = await asyncio.to_thread(known.check, text) if PLAYBOOK.search(text) else ()
                if not found:
                    known.findings = ()
                checked = version
                if uri in self.documents and document.version == version:
                    self.publish(uri, document, found)
                if version is None:
                    return
        finally:
            del self.checking[uri]

    def publish(self, uri: str, document: TextDocument, found: tuple[Finding, ...]) -> None:
        lines = document.lines
        told = [diagnostic_of(one, lines, document) for one in found]
        self.text_document_publish_diagnostics(
            lsp.PublishDiagnosticsParams(uri=uri, version=document.version, diagnostics=told)
        )

    def close(self, uri: str) -> None:
        self.documents.pop(uri, None)
        self.text_document_publish_diagnostics(
            lsp.PublishDiagnosticsParams(uri=uri, diagnostics=[])
        )


def diagnostic_of(finding: Finding, lines: Sequence[str], document: TextDocument) -> lsp.Diagnostic:
    """A finding where it stands, with its hint and the sentence about its code."""
    hint = f"\n{finding.hint}" if finding.hint else ""
    return lsp.Diagnostic(
        range=range_of(finding.line - 1, finding.column - 1, None, lines, document),
        message=f"{finding.message}{hint}",
        severity=SEVERITIES[finding.severity],
        code=finding.code,
        source=f"noetl {CODES[finding.code].rule}",
    )


def range_of(
    line: int, start: int, end: int | None, lines: Sequence[str], document: TextDocument
) -> lsp.Range:
    """A piece of a line in the units of the editor; without an end the word that begins there."""
    row = lines[line].rstrip("\r\n") if line < len(lines) else ""
    if end is None:
        end = end_of(row, start)
    first, last = ServerTextPosition(line, min(start, len(row))), ServerTextPosition(line, end)
    return document.position_codec.range_to_client_units(lines, ServerTextRange(first, last))


def make_server() -> PlaybookServer:
    """A server with everything that it answers."""
    server = PlaybookServer()
    _take_changes(server)
    _answer(server)
    _fix(server)
    return server


def _take_changes(server: PlaybookServer) -> None:
    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: lsp.DidOpenTextDocumentParams) -> None:
        server.opened(params.text_document.uri)
        server.check_soon(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    def changed(params: lsp.DidChangeTextDocumentParams) -> None:
        server.check_soon(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: lsp.DidCloseTextDocumentParams) -> None:
        server.close(params.text_document.uri)


def _answer(server: PlaybookServer) -> None:
    def asked(params: Any) -> tuple[OpenDocument, TextDocument, ServerTextPosition]:
        known, document = server.opened(params.text_document.uri)
        return known, document, document.position_from_client_units(params.position)

    options = lsp.CompletionOptions(trigger_characters=TRIGGERS)

    @server.feature(lsp.TEXT_DOCUMENT_COMPLETION, options)
    async def complete(params: lsp.CompletionParams) -> lsp.CompletionList:
        known, document, at = asked(params)
        offers = await asyncio.to_thread(known.offers, document.source, at.line, at.character)
        items = [item_of(one, at, document) for one in offers]
        return lsp.CompletionList(is_incomplete=False, items=items)

    @server.feature(lsp.TEXT_DOCUMENT_HOVER)
    async def hover(params: lsp.HoverParams) -> lsp.Hover | None:
        known, document, at = asked(params)
        words = await asyncio.to_thread(known.hover, document.source, at.line, at.character)
        if words is None:
            return None
        return lsp.Hover(contents=lsp.MarkupContent(kind=lsp.MarkupKind.Markdown, value=words))

    @server.feature(lsp.TEXT_DOCUMENT_DEFINITION)
    async def define(params: lsp.DefinitionParams) -> lsp.Location | None:
        known, document, at = asked(params)
        place = await asyncio.to_thread(known.definition, document.source, at.line, at.character)
        return None if place is None else location_of(place, document)


def item_of(
    offer: Completion, at: ServerTextPosition, document: TextDocument
) -> lsp.CompletionItem:
    lines, start = document.lines, at.character - offer.back
    where = range_of(at.line, start, at.character, lines, document)
    about = lsp.MarkupContent(kind=lsp.MarkupKind.Markdown, value=offer.entry.about)
    return lsp.CompletionItem(
        label=offer.entry.name,
        kind=SORTS[offer.sort],
        detail=offer.entry.summary or None,
        documentation=about if offer.entry.about else None,
        text_edit=lsp.TextEdit(range=where, new_text=offer.insert),
    )


def location_of(place: Place, document: TextDocument) -> lsp.Location:
    where = range_of(place.line - 1, place.column - 1, None, document.lines, document)
    return lsp.Location(uri=document.uri, range=where)


def _fix(server: PlaybookServer) -> None:
    options = lsp.CodeActionOptions(code_action_kinds=[lsp.CodeActionKind.QuickFix])

    @server.feature(lsp.TEXT_DOCUMENT_CODE_ACTION, options)
    async def fix(params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
        known, document = server.opened(params.text_document.uri)
        lines = document.lines
        rows = [line.rstrip("\r\n") for line in lines]
        first, last = params.range.start.line + 1, params.range.end.line + 1
        found = [one for one in known.findings if first <= one.line <= last]
        made = [(one, fix_of(one, rows)) for one in found]
        actions = [action_of(one, edit, lines, document) for one, edit in made if edit is not None]
        if any(MIGRATES in one.hint for one in found):
            actions += await asyncio.to_thread(migrated, server, document)
        return actions


def action_of(
    finding: Finding, fix: Fix, lines: Sequence[str], document: TextDocument
) -> lsp.CodeAction:
    where = range_of(fix.line, fix.start, fix.end, lines, document)
    edit = lsp.TextEdit(range=where, new_text=fix.text)
    return lsp.CodeAction(
        title=fix.title,
        kind=lsp.CodeActionKind.QuickFix,
        diagnostics=[diagnostic_of(finding, lines, document)],
        is_preferred=True,
        edit=lsp.WorkspaceEdit(changes={document.uri: [edit]}),
    )


def migrated(server: PlaybookServer, document: TextDocument) -> list[lsp.CodeAction]:
    """The whole playbook in the canonical language, where it can be translated whole (DIA)."""
    made = migrate(document.source.encode(), server.kinds)
    if not made.complete or not made.changed:
        return []
    whole = lsp.Range(lsp.Position(0, 0), lsp.Position(len(document.lines) + 1, 0))
    edit = lsp.TextEdit(range=whole, new_text=made.text)
    return [
        lsp.CodeAction(
            title="Translate this playbook (noetl migrate)",
            kind=lsp.CodeActionKind.QuickFix,
            edit=lsp.WorkspaceEdit(changes={document.uri: [edit]}),
        )
    ]
