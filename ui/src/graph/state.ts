// What a log says about the boxes and arcs of its playbook.
import type { Outline } from "../lib/api-types";
import type { ArcVerdict, StepRun, Timeline } from "../lib/timeline";

export interface BoxState {
  status: string;
  runs: number;
  failed: number;
  /** Iterations that ended, of all, where the step is a loop. */
  loop: string;
  iterationsFailed: number;
}
export interface LinkState {
  taken: number;
  /** How often the arcs of its step were evaluated. */
  asked: number;
  /** Of one that was evaluated and never taken: what kept it. */
  why: string;
}

const BUSY = ["running", "waiting", "queued"];

export function boxStates(line: Timeline): Map<string, BoxState> {
  const runs = new Map<string, StepRun[]>();
  for (const run of line.runs.values()) {
    const known = runs.get(run.step);
    if (known) known.push(run);
    else runs.set(run.step, [run]);
  }
  return new Map([...runs].map(([step, found]) => [step, stateOf(found)]));
}

function stateOf(runs: StepRun[]): BoxState {
  const failed = runs.filter((run) => run.status === "failed").length;
  const busy = BUSY.find((status) => runs.some((run) => run.status === status));
  const loops = runs.map((run) => run.loop).filter((loop) => loop !== null);
  const ended = loops.reduce((sum, loop) => sum + loop.done + loop.failed, 0);
  const total = loops.reduce((sum, loop) => sum + (loop.total ?? 0), 0);
  return {
    status: busy ?? (failed ? "failed" : "done"),
    runs: runs.length,
    failed,
    iterationsFailed: loops.reduce((sum, loop) => sum + loop.failed, 0),
    loop: loops.length ? `${ended.toLocaleString()} / ${total.toLocaleString()}` : "",
  };
}

/** One state for each link of the outline, in its order. */
export function linkStates(outline: Outline, line: Timeline): LinkState[] {
  const arcs = new Map<string, { asked: number; taken: Map<number, number>; last: ArcVerdict }>();
  for (const verdict of line.arcs) {
    let found = arcs.get(verdict.step);
    if (!found) arcs.set(verdict.step, (found = { asked: 0, taken: new Map(), last: verdict }));
    found.asked++;
    found.last = verdict;
    for (const arc of verdict.fired) found.taken.set(arc, (found.taken.get(arc) ?? 0) + 1);
  }
  const seen = new Map<number, number>();
  return outline.links.map((link) => {
    const place = seen.get(link.source) ?? 0;
    seen.set(link.source, place + 1);
    const found = arcs.get(outline.boxes[link.source]?.name ?? "");
    const fork = outline.boxes[link.source]?.marks.some((mark) => mark.sort === "fork") ?? false;
    const why = found ? reason(found.last, place, link.failure ?? false, fork) : "";
    return { asked: found?.asked ?? 0, taken: found?.taken.get(place) ?? 0, why };
  });
}

/** NEXT-2: of an exclusive router the first arc that matches is taken, of an inclusive one all. */
function reason(verdict: ArcVerdict, place: number, failure: boolean, fork: boolean): string {
  if (!fork && verdict.fired.some((arc) => arc < place)) return "an earlier arc matched";
  if (verdict.on === "step.failed" && !failure) return "the step failed";
  return failure && verdict.on !== "step.failed" ? "the step did not fail" : "its guard was false";
}
