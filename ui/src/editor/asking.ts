// What the server knows about the place of the cursor: the same that `noetl lsp` tells editors.
import { type Completion, type CompletionContext, type CompletionResult } from "@codemirror/autocomplete";
import { type Action, type Diagnostic } from "@codemirror/lint";
import type { EditorState, Text } from "@codemirror/state";
import { type EditorView, hoverTooltip } from "@codemirror/view";
import { call } from "../lib/api";
import type { FoundFault, TextEdit } from "../lib/api-types";
import { charactersTo, offsetOf } from "./places";

const BEFORE = /[\w.{|:,\-]\s*$/;
const WORD = /^[\w-]*$/;
const TYPES = { key: "property", value: "enum", name: "variable" } as const;

function placeOf(state: EditorState, at: number): { text: string; line: number; column: number } {
  const line = state.doc.lineAt(at);
  return { text: state.doc.toString(), line: line.number - 1, column: charactersTo(line.text, at - line.from) };
}

/** Words of Markdown as plain text: nothing that the server says is ever markup here. */
function plain(about: string): HTMLElement {
  const shown = document.createElement("div");
  shown.className = "about";
  shown.textContent = about.replace(/\*\*|`/g, "");
  return shown;
}

export async function offers(context: CompletionContext): Promise<CompletionResult | null> {
  const line = context.state.doc.lineAt(context.pos);
  const before = line.text.slice(0, context.pos - line.from);
  if (!context.explicit && !BEFORE.test(before)) return null;
  const asked = new AbortController();
  context.addEventListener("abort", () => asked.abort());
  const body = placeOf(context.state, context.pos);
  const told = await call("editing_complete", { body, signal: asked.signal }).catch(() => null);
  if (!told?.offers.length) return null;
  const options = told.offers.map(
    (one): Completion => ({
      label: one.name,
      detail: one.summary.length > 60 ? `${one.summary.slice(0, 60)}…` : one.summary,
      type: TYPES[one.sort],
      apply: one.insert,
      ...(one.about ? { info: () => plain(one.about) } : {}),
    }),
  );
  return { from: context.pos - told.offers[0]!.back, options, validFor: WORD };
}

export const about = hoverTooltip(
  async (view, at) => {
    const word = view.state.wordAt(at);
    if (!word) return null;
    const told = await call("editing_about", { body: placeOf(view.state, at) }).catch(() => null);
    if (!told?.about) return null;
    const words = told.about;
    return { pos: word.from, end: word.to, above: true, create: () => ({ dom: plain(words) }) };
  },
  { hoverTime: 500 },
);

export function applyFix(view: EditorView, fix: TextEdit): void {
  const text = view.state.doc;
  const from = offsetOf(text, fix.line, fix.start);
  view.dispatch({ changes: { from, to: offsetOf(text, fix.line, fix.end), insert: fix.text } });
  view.focus();
}

export function diagnosticsOf(text: Text, faults: FoundFault[]): Diagnostic[] {
  return faults.map(({ finding, end, fix }) => {
    const from = offsetOf(text, finding.line - 1, finding.column - 1);
    const actions: Action[] = fix ? [{ name: fix.title, apply: (view) => applyFix(view, fix) }] : [];
    return {
      from,
      to: Math.max(from, offsetOf(text, finding.line - 1, end - 1)),
      severity: finding.severity,
      source: finding.code,
      message: finding.hint ? `${finding.message}\n${finding.hint}` : finding.message,
      actions,
    };
  });
}
