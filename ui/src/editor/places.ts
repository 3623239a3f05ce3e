// The server counts characters, the browser counts what it keeps a text in.
import type { Text } from "@codemirror/state";

const PAIRS = /[\ud800-\udfff]/;

/** The place in a line behind so many characters. */
export function placeIn(line: string, characters: number): number {
  if (!PAIRS.test(line)) return Math.min(characters, line.length);
  return [...line].slice(0, characters).join("").length;
}

/** How many characters of a line are before a place. */
export function charactersTo(line: string, place: number): number {
  const before = line.slice(0, place);
  return PAIRS.test(before) ? [...before].length : before.length;
}

/** The offset of a line and a column, both from 0; at the nearest place where it has none. */
export function offsetOf(text: Text, line: number, column: number): number {
  const found = text.line(Math.max(1, Math.min(line + 1, text.lines)));
  return found.from + placeIn(found.text, Math.max(0, column));
}
