// Tests of a playbook as a text: where the browser keeps it, and one to begin with.
import type { Outline } from "./api-types";

/** Kinds that a test runs as they are, because they touch nothing. */
const HARMLESS = ["noop", "transform", "workbook", "iterator"];
const key = (path: string) => `noetl-tests:${path}`;

export function keptTests(path: string): string | null {
  return localStorage.getItem(key(path));
}

export function keepTests(path: string, text: string): void {
  try {
    localStorage.setItem(key(path), text);
  } catch {
    // Too large for the browser to keep: it is in the editor.
  }
}

export function fileName(path: string): string {
  return `${path.split("/").at(-1)}.test.yaml`;
}

/** One test that names every task which needs an outcome. */
export function firstTests(path: string, outline: Outline): string {
  const tasks = outline.boxes.flatMap((box) =>
    box.rows.filter((row) => !HARMLESS.includes(row.kind)).map((row) => `${box.name}.${row.label}`),
  );
  const outcomes = tasks.map((task) => `      ${JSON.stringify(task)}: { ok: null }`);
  return [
    `playbook: ${fileName(path).replace(".test.yaml", ".yaml")}`,
    "tests:",
    "  - name: it completes",
    "    workload: {}",
    ...(outcomes.length ? ["    outcomes:", ...outcomes] : ["    outcomes: {}"]),
    "    expect:",
    "      status: completed",
    "",
  ].join("\n");
}
