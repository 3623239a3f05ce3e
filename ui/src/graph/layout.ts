// Places steps and arcs; in a worker, so that a large playbook does not hold up the page.
import ELK, { type ElkNode } from "elkjs/lib/elk-api.js";
import ElkWorker from "elkjs/lib/elk-worker.min.js?worker";
import type { Outline } from "../lib/api-types";

export interface Place {
  x: number;
  y: number;
}
/** How an arc runs, as a path of SVG, and the middle of what is written on it. */
export interface Way {
  path: string;
  label: Place | null;
}
export interface Layout {
  boxes: Place[];
  ways: Way[];
  width: number;
  height: number;
  /** Whether it goes from top to bottom, rather than from left to right. */
  down: boolean;
}
/** On a telephone boxes are as wide as their words, so that all of them can be read. */
const SMALL = window.innerWidth < 760;
export const WIDTH = SMALL ? 156 : 208;
const HEAD = 50;
const ROW = 19;
export const MOST_ROWS = 4;
/** How a guard is written on its arc: characters in a line, and lines; pointing at it shows all of it. */
const [LONG, LINES] = SMALL ? [24, 3] : [36, 2];
const LINE = 15;
const CORNER = 6;
/** A label lies on its arc, which shows whose it is. */
const INLINE = { "elk.edgeLabels.inline": "true" };

export interface Room {
  width: number;
  height: number;
}
/** On a telephone, and beside a text, a playbook goes from top to bottom. */
const NARROW = 600;
/** Above this size nobody needs the other direction to read it. */
const READABLE = 0.85;
/** A playbook of more steps is laid out once: it is read in parts anyway. */
const TWICE = 80;
export const MARGIN = 0.08;

/** How large it is drawn if all of it is to be seen. */
function zoomOf(placed: Layout, room: Room): number {
  return Math.min(1, room.width / placed.width, room.height / placed.height) * (1 - MARGIN);
}

export function heightOf(rows: number): number {
  return HEAD + Math.min(rows, MOST_ROWS) * ROW + (rows ? 12 : 0) + (rows > MOST_ROWS ? ROW : 0);
}

/** A guard in lines that end between words; what has no room is left out. */
export function linesOf(guard: string): string[] {
  const lines: string[] = [];
  for (const word of guard.split(/\s+/).filter(Boolean)) {
    const longer = lines.length ? `${lines.at(-1)} ${word}` : word;
    if (lines.length && longer.length <= LONG) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  const shown = lines.slice(0, LINES).map((line) => (line.length > LONG ? `${line.slice(0, LONG)}…` : line));
  if (lines.length > LINES) shown[LINES - 1] = `${shown[LINES - 1]!.replace(/…$/, "")}…`;
  return shown;
}

let elk: InstanceType<typeof ELK> | null = null;
let pen: CanvasRenderingContext2D | null = null;

function widthOf(text: string): number {
  if (pen === null) {
    pen = document.createElement("canvas").getContext("2d")!;
    pen.font = `11px ${getComputedStyle(document.documentElement).fontFamily}`;
  }
  return Math.ceil(pen.measureText(text).width) + 12;
}

/** Straight lines through the points, with round corners. */
function pathOf(points: Place[]): string {
  const [first, ...rest] = points;
  if (!first) return "";
  let path = `M${first.x},${first.y}`;
  rest.forEach((at, number) => {
    const before = points[number]!;
    const after = rest[number + 1];
    if (!after) {
      path += `L${at.x},${at.y}`;
      return;
    }
    const near = (to: Place) => {
      const far = Math.hypot(to.x - at.x, to.y - at.y) || 1;
      const part = Math.min(CORNER, far / 2) / far;
      return `${at.x + (to.x - at.x) * part},${at.y + (to.y - at.y) * part}`;
    };
    path += `L${near(before)}Q${at.x},${at.y} ${near(after)}`;
  });
  return path;
}

/**
 * Where everything goes. `labels` are what is written on the arcs, line by line: each has room of its
 * own, so that none lies on another or on a step.
 */
export async function layoutOf(outline: Outline, labels: string[][], room: Room): Promise<Layout> {
  if (room.width < NARROW) return placedAs(outline, labels, true);
  const right = await placedAs(outline, labels, false);
  if (zoomOf(right, room) >= READABLE || outline.boxes.length > TWICE) return right;
  const down = await placedAs(outline, labels, true);
  return zoomOf(down, room) > zoomOf(right, room) ? down : right;
}

async function placedAs(outline: Outline, labels: string[][], down: boolean): Promise<Layout> {
  elk ??= new ELK({ workerFactory: () => new ElkWorker() });
  const graph: ElkNode = {
    id: "all",
    layoutOptions: {
      "elk.algorithm": "layered",
      "elk.direction": down ? "DOWN" : "RIGHT",
      "elk.layered.spacing.nodeNodeBetweenLayers": down ? "24" : "28",
      "elk.layered.spacing.edgeNodeBetweenLayers": "12",
      "elk.spacing.nodeNode": "28",
      "elk.spacing.edgeLabel": "0",
      "elk.layered.considerModelOrder.strategy": "NODES_AND_EDGES",
    },
    children: outline.boxes.map((box, number) => ({
      id: String(number),
      width: WIDTH,
      height: heightOf(box.rows.length),
    })),
    edges: outline.links.map((link, number) => {
      const lines = labels[number] ?? [];
      const text = lines.join("\n");
      return {
        id: `e${number}`,
        sources: [String(link.source)],
        targets: [String(link.target)],
        labels: text ? [{ id: `l${number}`, text, width: Math.max(...lines.map(widthOf)), height: LINE * lines.length + 2, layoutOptions: INLINE }] : [],
      };
    }),
  };
  const placed = await elk.layout(graph);
  return {
    boxes: (placed.children ?? []).map((one) => ({ x: one.x ?? 0, y: one.y ?? 0 })),
    ways: (placed.edges ?? []).map((edge) => {
      const section = edge.sections?.[0];
      const label = edge.labels?.[0];
      return {
        path: section ? pathOf([section.startPoint, ...(section.bendPoints ?? []), section.endPoint]) : "",
        label: label ? { x: (label.x ?? 0) + (label.width ?? 0) / 2, y: (label.y ?? 0) + (label.height ?? 0) / 2 } : null,
      };
    }),
    width: placed.width ?? 0,
    height: placed.height ?? 0,
    down,
  };
}
