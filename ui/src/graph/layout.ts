// Places steps from left to right; in a worker, so that a large playbook does not hold up the page.
import ELK from "elkjs/lib/elk-api.js";
import ElkWorker from "elkjs/lib/elk-worker.min.js?worker";
import type { Outline } from "../lib/api-types";

export interface Place {
  x: number;
  y: number;
}
export const WIDTH = 208;
const HEAD = 46;
const ROW = 19;
export const MOST_ROWS = 4;
/** Characters of a guard that are drawn; all of it is beside the graph. */
export const LABEL = 26;

export function heightOf(rows: number): number {
  return HEAD + Math.min(rows, MOST_ROWS) * ROW + (rows ? 8 : 0) + (rows > MOST_ROWS ? ROW : 0);
}

let elk: InstanceType<typeof ELK> | null = null;

/** Room for the longest guard between two layers. */
function between(outline: Outline): number {
  const longest = Math.max(0, ...outline.links.map((link) => Math.min(link.label.length, LABEL)));
  return longest ? 90 + longest * 4 : 60;
}

export async function placesOf(outline: Outline, down = false): Promise<Place[]> {
  elk ??= new ELK({ workerFactory: () => new ElkWorker() });
  const placed = await elk.layout({
    id: "all",
    layoutOptions: {
      "elk.algorithm": "layered",
      "elk.direction": down ? "DOWN" : "RIGHT",
      "elk.layered.spacing.nodeNodeBetweenLayers": String(down ? 56 : between(outline)),
      "elk.spacing.nodeNode": "28",
      "elk.layered.considerModelOrder.strategy": "NODES_AND_EDGES",
    },
    children: outline.boxes.map((box, number) => ({
      id: String(number),
      width: WIDTH,
      height: heightOf(box.rows.length),
    })),
    edges: outline.links.map((link, number) => ({
      id: `e${number}`,
      sources: [String(link.source)],
      targets: [String(link.target)],
    })),
  });
  return (placed.children ?? []).map((one) => ({ x: one.x ?? 0, y: one.y ?? 0 }));
}
