// A playbook of hundreds of steps is drawn as groups of them; each is opened by itself.
import type { Box, Edge, Outline } from "../lib/api-types";
import type { Change, Changes } from "../lib/changes";
import type { BoxState, LinkState } from "./state";

/** More boxes than this are grouped. */
export const MOST_BOXES = 200;
/** So many groups are made of them, if joining chains is not enough. */
const GROUPS = 60;
/** Steps of a chain that are one group: more of them in a row could not be seen at once. */
const CHAIN = 20;

export interface Grouped {
  outline: Outline;
  /** The steps of each box, by their numbers in the whole; of a step that is drawn itself, that one. */
  members: number[][];
  /** The arcs that each arc stands for. */
  links: number[][];
}

/** What is drawn of an outline: all of it, its groups, or the inside of one. */
export function groupedOf(outline: Outline, open: string): Grouped {
  const all = outline.boxes.map((_, number) => number);
  if (all.length <= MOST_BOXES) return { outline, members: all.map((one) => [one]), links: outline.links.map((_, number) => [number]) };
  const groups = groupsOf(outline);
  const opened = groups.find((group) => nameOf(outline, group) === open);
  return opened ? drawn(outline, opened.map((one) => [one])) : drawn(outline, groups);
}

/** As people read it: the first and the last, and how many they are. */
export function nameOf(outline: Outline, group: number[]): string {
  const [first, last] = [outline.boxes[group[0]!]!.name, outline.boxes[group.at(-1)!]!.name];
  return group.length > 1 ? `${first} … ${last}` : first;
}

function groupsOf(outline: Outline): number[][] {
  const after = outline.boxes.map((): number[] => []);
  const before = outline.boxes.map((): number[] => []);
  for (const { source, target } of outline.links) {
    after[source]!.push(target);
    before[target]!.push(source);
  }
  const order = ordered(after);
  const chains: number[][] = [];
  const chainOf = new Map<number, number[]>();
  for (const one of order) {
    const [only] = before[one]!;
    const known = only !== undefined && before[one]!.length === 1 && after[only]!.length === 1 ? chainOf.get(only) : undefined;
    const chain = known && known.length < CHAIN && known.at(-1) === only ? known : [];
    if (!chain.length) chains.push(chain);
    chain.push(one);
    chainOf.set(one, chain);
  }
  if (chains.length <= MOST_BOXES) return chains;
  const size = Math.ceil(order.length / GROUPS);
  return Array.from({ length: Math.ceil(order.length / size) }, (_, number) => order.slice(number * size, (number + 1) * size));
}

/** Steps as an execution comes to them; what nothing leads to is at its place in the text. */
function ordered(after: number[][]): number[] {
  const seen = new Set<number>();
  for (let start = 0; start < after.length; start++) {
    const queue = seen.has(start) ? [] : [start];
    while (queue.length) {
      const one = queue.shift()!;
      if (seen.has(one)) continue;
      seen.add(one);
      queue.push(...after[one]!);
    }
  }
  return [...seen];
}

function drawn(outline: Outline, members: number[][]): Grouped {
  const boxOf = new Map(members.flatMap((group, number) => group.map((one) => [one, number] as const)));
  const boxes = members.map((group): Box => {
    if (group.length === 1) return outline.boxes[group[0]!]!;
    const rows = group.map((one) => ({ ...outline.boxes[one]!.rows[0]!, label: outline.boxes[one]!.name, kind: outline.boxes[one]!.rows[0]?.kind ?? "" }));
    return { name: nameOf(outline, group), desc: "", marks: [], rows, entry: group.some((one) => outline.boxes[one]!.entry ?? false) };
  });
  const joined = new Map<string, { edge: Edge; of: number[] }>();
  outline.links.forEach((link, number) => {
    const [source, target] = [boxOf.get(link.source), boxOf.get(link.target)];
    if (source === undefined || target === undefined) return;
    const alone = members[source]!.length === 1 && members[target]!.length === 1;
    if (source === target && !alone) return;
    const key = alone ? `${source} ${target} ${number}` : `${source} ${target}`;
    const known = joined.get(key);
    if (known) known.of.push(number);
    else joined.set(key, { edge: { ...link, source, target, label: alone ? link.label : "" }, of: [number] });
  });
  const links = [...joined.values()];
  return { outline: { ...outline, boxes, links: links.map((one) => one.edge) }, members, links: links.map((one) => one.of) };
}

const WORST = ["failed", "running", "waiting", "queued", "done"];

/** How the steps of a box stand together. */
export function together(states: (BoxState | undefined)[]): BoxState | null {
  const found = states.filter((state) => state !== undefined);
  if (!found.length) return null;
  if (states.length === 1) return found[0]!;
  const status = WORST.find((word) => found.some((state) => state.status === word)) ?? "done";
  return { status, runs: found.reduce((sum, one) => sum + one.runs, 0), failed: found.reduce((sum, one) => sum + one.failed, 0), loop: "", iterationsFailed: 0 };
}

export function linksTogether(states: LinkState[]): LinkState {
  const [first] = states;
  if (states.length === 1) return first!;
  const sum = (key: "taken" | "asked") => states.reduce((all, one) => all + one[key], 0);
  return { taken: sum("taken"), asked: sum("asked"), why: "" };
}

export function changeOf(changes: Changes["boxes"], of: number[]): Change | null {
  const found = of.map((one) => changes[one] ?? null);
  return found.every((one) => one === found[0]) ? (found[0] ?? null) : found.some(Boolean) ? "changed" : null;
}
