// What differs between two outlines of a playbook: steps by their names, arcs by what they join.
import type { Box, Edge, Outline } from "./api-types";

export type Change = "added" | "removed" | "changed";
export interface Changes {
  /** Both together, so that what was removed is drawn as well. */
  outline: Outline;
  /** By the number of the box. */
  boxes: (Change | null)[];
  links: (Change | null)[];
  words: { change: Change; text: string }[];
}

const same = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b);

interface Arc {
  from: string;
  to: string;
  edge: Edge;
}

function arcsOf(outline: Outline): Map<string, Arc> {
  const found = new Map<string, Arc>();
  for (const edge of outline.links) {
    const from = outline.boxes[edge.source]?.name ?? "";
    const to = outline.boxes[edge.target]?.name ?? "";
    let key = `${from}\n${to}`;
    while (found.has(key)) key += "\n";
    found.set(key, { from, to, edge });
  }
  return found;
}

export function changesOf(before: Outline, after: Outline): Changes {
  const old = new Map(before.boxes.map((box) => [box.name, box]));
  const names = new Set(after.boxes.map((box) => box.name));
  const gone = before.boxes.filter((box) => !names.has(box.name));
  const boxes: Box[] = [...after.boxes, ...gone];
  const number = new Map(boxes.map((box, place) => [box.name, place]));
  const words: Changes["words"] = [];
  const marks = boxes.map((box): Change | null => {
    const was = old.get(box.name);
    const change = !names.has(box.name) ? "removed" : !was ? "added" : same(was, box) ? null : "changed";
    if (change) words.push({ change, text: `step ${box.name}${change === "changed" ? `: ${whatChanged(was!, box)}` : ""}` });
    return change;
  });
  const [first, second] = [arcsOf(before), arcsOf(after)];
  const links: Edge[] = [];
  const told: (Change | null)[] = [];
  for (const [key, arc] of new Map([...second, ...first])) {
    const now = second.get(key);
    const was = first.get(key);
    const edge = now?.edge ?? arc.edge;
    const change = !now ? "removed" : !was ? "added" : was.edge.label === now.edge.label ? null : "changed";
    links.push({ ...edge, source: number.get(arc.from)!, target: number.get(arc.to)! });
    told.push(change);
    if (change) words.push({ change, text: `arc ${arc.from} → ${arc.to}${guards(was?.edge, now?.edge, change)}` });
  }
  return { outline: { ...after, boxes, links }, boxes: marks, links: told, words };
}

function guards(was: Edge | undefined, now: Edge | undefined, change: Change): string {
  if (change === "changed") return `: ${was!.label || "always"} became ${now!.label || "always"}`;
  const label = (now ?? was)!.label;
  return label ? ` (${label})` : "";
}

function whatChanged(was: Box, now: Box): string {
  const found: string[] = [];
  const labels = new Map(was.rows.map((row) => [row.label, row]));
  for (const row of now.rows) {
    const old = labels.get(row.label);
    if (!old) found.push(`task ${row.label} (${row.kind}) added`);
    else if (!same(old, row)) found.push(`task ${row.label} changed`);
    labels.delete(row.label);
  }
  for (const label of labels.keys()) found.push(`task ${label} removed`);
  if (!same(was.marks, now.marks)) found.push("join, admission or loop changed");
  if (was.desc !== now.desc) found.push("description changed");
  return found.join(", ") || "changed";
}
