"""`noetl lsp`, asked by the client of its own library over the pipes of a real process."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from lsprotocol import types as lsp
from pygls.lsp.client import LanguageClient
from tests.system.program import HELLO, NOETL, noetl

from noetl.extras import needs

URI = "file:///project/playbook.yaml"
TEXT = HELLO.read_text("utf-8")
BROKEN = TEXT.replace("- step: done\n\n", "- step: dnoe\n\n", 1)


class Editor(LanguageClient):
    """An editor that waits for findings instead of showing them."""

    def __init__(self) -> None:
        super().__init__("an editor", "1")
        self.told: asyncio.Queue[lsp.PublishDiagnosticsParams] = asyncio.Queue()

        def hear(params: lsp.PublishDiagnosticsParams) -> None:
            self.told.put_nowait(params)

        self.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(hear)

    def open(self, text: str, uri: str = URI) -> None:
        item = lsp.TextDocumentItem(uri=uri, language_id="yaml", version=1, text=text)
        self.text_document_did_open(lsp.DidOpenTextDocumentParams(item))

    def change(self, version: int, text: str) -> None:
        self.text_document_did_change(
            lsp.DidChangeTextDocumentParams(
                lsp.VersionedTextDocumentIdentifier(version=version, uri=URI),
                [lsp.TextDocumentContentChangeWholeDocument(text)],
            )
        )

    async def findings(self, version: int) -> list[lsp.Diagnostic]:
        """Those of a version; of versions before it there may be some, or none."""
        while True:
            told = await self.told.get()
            if told.version == version:
                return list(told.diagnostics)

    async def complete(self, line: int, character: int) -> list[str]:
        answer = await self.text_document_completion_async(
            lsp.CompletionParams(lsp.TextDocumentIdentifier(URI), lsp.Position(line, character))
        )
        assert isinstance(answer, lsp.CompletionList)
        return [item.label for item in answer.items]


def edit(work: Callable[[Editor], Awaitable[None]]) -> None:
    """Start the server, work with it, and let it go as an editor does."""

    async def session() -> None:
        editor = Editor()
        await editor.start_io(NOETL, "lsp")
        await editor.initialize_async(lsp.InitializeParams(capabilities=lsp.ClientCapabilities()))
        editor.initialized(lsp.InitializedParams())
        await work(editor)
        await editor.shutdown_async(None)
        editor.exit(None)
        await editor.stop()  # type: ignore[no-untyped-call]
        assert editor._server is not None
        assert editor._server.returncode == 0

    asyncio.run(session())


def place_of(text: str, words: str) -> tuple[int, int]:
    before = text[: text.index(words)]
    return before.count("\n"), len(before) - (before.rfind("\n") + 1)


def test_findings_come_as_one_types_and_a_fix_with_them() -> None:
    async def work(editor: Editor) -> None:
        editor.open(BROKEN)
        [found] = await editor.findings(1)
        assert (found.code, found.severity) == ("unknown-step", lsp.DiagnosticSeverity.Error)
        assert "'dnoe', which does not exist\ndid you mean 'done'?" in found.message
        line, column = place_of(BROKEN, "dnoe")
        assert found.range == lsp.Range(lsp.Position(line, column), lsp.Position(line, column + 4))
        [fix] = (
            await editor.text_document_code_action_async(
                lsp.CodeActionParams(
                    lsp.TextDocumentIdentifier(URI), found.range, lsp.CodeActionContext([found])
                )
            )
            or []
        )
        assert isinstance(fix, lsp.CodeAction)
        assert fix.edit is not None
        assert fix.edit.changes == {URI: (lsp.TextEdit(found.range, "done"),)}
        editor.change(2, TEXT)
        assert await editor.findings(2) == []

    edit(work)


def test_the_newest_of_many_versions_is_told() -> None:
    async def work(editor: Editor) -> None:
        editor.open(TEXT)
        for version in range(2, 60):
            editor.change(version, TEXT.replace("hour: 9", f"hour: {version}\n  x"))
        editor.change(60, BROKEN)
        [found] = await editor.findings(60)
        assert found.code == "unknown-step"
        assert editor.told.empty()

    edit(work)


def test_nobody_waits_for_a_check_of_another_text() -> None:
    steps = "".join(
        f"  - step: s{number}\n    tool:\n      - rest: {{ kind: noop }}\n"
        f"    next:\n      arcs:\n        - step: s{number + 1}\n"
        for number in range(3000)
    )
    large = "file:///project/large.yaml"

    async def work(editor: Editor) -> None:
        editor.open(TEXT)
        assert await editor.findings(1) == []
        editor.open(TEXT.partition("  - step:")[0] + steps, large)
        assert "keychain" in await editor.complete(0, 0)
        assert editor.told.empty()
        assert (await editor.told.get()).uri == large

    edit(work)


def test_completion_hover_and_definition_on_half_a_line() -> None:
    async def work(editor: Editor) -> None:
        half = TEXT + "    next:\n      arcs:\n        - step: "
        editor.open(half)
        last = half.count("\n")
        assert await editor.complete(last, 16) == ["start", "good_morning", "good_evening", "done"]
        where = lsp.TextDocumentIdentifier(URI)
        line, column = place_of(TEXT, "good_morning\n          when")
        at = lsp.Position(line, column + 3)
        defined = await editor.text_document_definition_async(lsp.DefinitionParams(where, at))
        assert isinstance(defined, lsp.Location)
        assert defined.range.start.line == place_of(TEXT, "- step: good_morning\n    tool")[0]
        arcs = lsp.Position(line - 1, 8)
        said = await editor.text_document_hover_async(lsp.HoverParams(where, arcs))
        assert said is not None
        assert isinstance(said.contents, lsp.MarkupContent)
        assert "NEXT-1: A router fires the first matching arc" in said.contents.value

    edit(work)


def test_columns_are_counted_as_editors_count() -> None:
    async def work(editor: Editor) -> None:
        # Two units of UTF-16 before the fault, one character here.
        text = TEXT.replace("- step: done\n\n", '- { args: { a: "😀" }, step: dnoe }\n\n', 1)
        editor.open(text)
        [found] = await editor.findings(1)
        line, column = place_of(text, "dnoe")
        assert found.range.start == lsp.Position(line, column + 1)

    edit(work)


def test_an_older_playbook_can_be_translated() -> None:
    async def work(editor: Editor) -> None:
        old = TEXT.replace("      arcs:\n        - step: done\n", "      - step: done\n")
        editor.open(old)
        first, *_ = await editor.findings(1)
        actions = await editor.text_document_code_action_async(
            lsp.CodeActionParams(
                lsp.TextDocumentIdentifier(URI), first.range, lsp.CodeActionContext([first])
            )
        )
        assert [one.title for one in actions or []] == ["Translate this playbook (noetl migrate)"]

    edit(work)


def test_other_yaml_is_left_alone() -> None:
    async def work(editor: Editor) -> None:
        editor.open("services:\n  web: { image: nginx }\n")
        assert await editor.findings(1) == []

    edit(work)


def test_without_its_extra_the_command_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "pygls.py").write_text("raise ModuleNotFoundError('pygls')")
    answer = noetl("lsp", PYTHONPATH=str(tmp_path))
    assert (answer.code, answer.out) == (3, "")
    assert needs("`noetl lsp`", "editor") in answer.err
