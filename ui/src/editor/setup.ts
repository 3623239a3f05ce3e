// The editor of playbooks: CodeMirror with the colours of the pages.
import { acceptCompletion, autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { yaml } from "@codemirror/lang-yaml";
import { bracketMatching, foldGutter, foldKeymap, HighlightStyle, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { lintGutter, lintKeymap } from "@codemirror/lint";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import { EditorState, type Extension } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, highlightActiveLineGutter, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { about, offers } from "./asking";

const COLOURS = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--accent)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--good)" },
  { tag: [tags.number, tags.bool, tags.null, tags.keyword], color: "var(--busy)" },
  { tag: tags.comment, color: "var(--faint)", fontStyle: "italic" },
  { tag: [tags.meta, tags.typeName, tags.labelName], color: "var(--wait)" },
]);

const LOOK = EditorView.theme({
  "&": { color: "var(--text)", backgroundColor: "var(--raised)", fontSize: "12.5px", height: "100%" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "19px" },
  ".cm-content": { caretColor: "var(--text)", padding: "10px 0" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  ".cm-gutters": { backgroundColor: "var(--sunken)", color: "var(--soft)", border: "0" },
  ".cm-activeLine": { backgroundColor: "color-mix(in srgb, var(--hover) 55%, transparent)" },
  ".cm-activeLineGutter": { backgroundColor: "var(--hover)", color: "var(--text)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
    backgroundColor: "var(--accent-ground)",
  },
  ".cm-selectionMatch": { backgroundColor: "var(--wait-ground)" },
  ".cm-foldPlaceholder": { backgroundColor: "var(--calm-ground)", border: "0", color: "var(--soft)" },
  ".cm-tooltip": {
    backgroundColor: "var(--raised)",
    color: "var(--text)",
    border: "1px solid var(--line)",
    borderRadius: "7px",
    maxWidth: "min(520px, 90vw)",
    overflow: "hidden",
  },
  ".cm-tooltip.cm-completionInfo": { padding: "8px 11px" },
  ".about": { whiteSpace: "pre-wrap", padding: "7px 10px", maxHeight: "260px", overflow: "auto" },
  ".cm-completionInfo .about": { padding: "0" },
  ".cm-tooltip-autocomplete > ul": { fontFamily: "var(--mono)", maxHeight: "240px" },
  ".cm-tooltip-autocomplete > ul > li[aria-selected]": { backgroundColor: "var(--accent-ground)", color: "var(--text)" },
  ".cm-completionDetail": { color: "var(--faint)", fontStyle: "normal", marginLeft: "10px" },
  ".cm-completionMatchedText": { textDecoration: "none", color: "var(--accent)", fontWeight: "600" },
  ".cm-diagnostic": { padding: "7px 10px", whiteSpace: "pre-wrap" },
  ".cm-diagnostic-error": { borderLeft: "3px solid var(--bad)" },
  ".cm-diagnostic-warning": { borderLeft: "3px solid var(--wait)" },
  ".cm-diagnosticSource": { color: "var(--faint)", opacity: "1" },
  ".cm-diagnosticAction": {
    backgroundColor: "var(--accent)",
    color: "var(--on-accent)",
    borderRadius: "5px",
    padding: "2px 9px",
    margin: "6px 8px 0 0",
  },
  ".cm-lintRange-error": { backgroundImage: "none", textDecoration: "underline wavy var(--bad) 1px", textUnderlineOffset: "3px" },
  ".cm-lintRange-warning": { backgroundImage: "none", textDecoration: "underline wavy var(--wait) 1px", textUnderlineOffset: "3px" },
  ".cm-panels": { backgroundColor: "var(--sunken)", color: "var(--text)", borderColor: "var(--line)" },
  ".cm-panel input, .cm-panel button": { backgroundImage: "none", backgroundColor: "var(--raised)", color: "var(--text)", border: "1px solid var(--line)", borderRadius: "5px" },
  ".cm-changedLine": { backgroundColor: "color-mix(in srgb, var(--good-ground) 70%, transparent) !important" },
  ".cm-deletedChunk": { backgroundColor: "var(--bad-ground)" },
  "&.cm-merge-a .cm-changedLine, .cm-deletedLine": { backgroundColor: "color-mix(in srgb, var(--bad-ground) 70%, transparent) !important" },
  "&.cm-merge-b .cm-changedText, .cm-changedText": { background: "var(--good-ground)", textDecoration: "underline var(--good)" },
  "&.cm-merge-a .cm-changedText, .cm-deletedChunk .cm-deletedText": { background: "var(--bad-ground)", textDecoration: "underline var(--bad)" },
  ".cm-collapsedLines": { background: "var(--calm-ground)", color: "var(--soft)", padding: "4px 12px" },
  // Their marks are in few fonts.
  ".cm-collapsedLines::before, .cm-collapsedLines::after": { content: "none" },
});

/** What every view of a playbook's text has. */
export function reading(label: string): Extension {
  return [
    lineNumbers(),
    yaml(),
    syntaxHighlighting(COLOURS),
    LOOK,
    search({ top: true }),
    keymap.of(searchKeymap),
    // The keyboard reaches it, to scroll where nothing can be written.
    EditorView.contentAttributes.of({ "aria-label": label, tabindex: "0" }),
  ];
}

export const fixed: Extension = [EditorState.readOnly.of(true), EditorView.editable.of(false)];

export function writing(label: string, asks: boolean): Extension {
  return [
    reading(label),
    EditorView.lineWrapping,
    history(),
    foldGutter(),
    lintGutter(),
    drawSelection(),
    indentOnInput(),
    indentUnit.of("  "),
    bracketMatching(),
    closeBrackets(),
    highlightActiveLine(),
    highlightActiveLineGutter(),
    highlightSelectionMatches(),
    asks ? [autocompletion({ override: [offers], icons: false, activateOnTypingDelay: 150 }), about] : [],
    keymap.of([
      { key: "Tab", run: acceptCompletion },
      ...closeBracketsKeymap,
      ...defaultKeymap,
      ...historyKeymap,
      ...foldKeymap,
      ...completionKeymap,
      ...lintKeymap,
      indentWithTab,
    ]),
  ];
}
