// Folds events into what the page shows of step runs: times, tasks with attempts, loops as counts.
import type { EventView } from "./api-types";
import type { Counts, Told } from "./live.svelte";

export interface Attempt {
  number: number;
  from: number;
  to: number | null;
  status: string;
  do: string;
  event: EventView | null;
}

export interface TaskRun {
  id: string;
  task: string;
  kind: string;
  attempts: Attempt[];
}

export interface LoopCount {
  total: number | null;
  started: number;
  done: number;
  failed: number;
  /** Iterations that failed, the first of them. */
  failures: number[];
}

export interface StepRun {
  id: string;
  step: string;
  scheduled: number;
  started: number | null;
  ended: number | null;
  status: string;
  error: string;
  tasks: Map<string, TaskRun>;
  loop: LoopCount | null;
  lost: number[];
  waits: { from: number; to: number | null }[];
  worker: string;
}

export interface ArcVerdict {
  step: string;
  /** The event that the arcs were evaluated on. */
  on: string;
  fired: number[];
}

/** What the admission of a step said to the tokens that came. */
export interface Admissions {
  allowed: number;
  refused: number;
  /** The rule that refused the last one. */
  rule: number | null;
}

const MOST_FAILURES = 50;

export class Timeline {
  runs = new Map<string, StepRun>();
  arcs: ArcVerdict[] = [];
  admissions = new Map<string, Admissions>();
  seq = 0;
  from: number | null = null;
  to = 0;

  take(event: Told): void {
    this.seq = Math.max(this.seq, event.seq);
    const at = Date.parse(event.timestamp);
    this.from ??= at;
    this.to = Math.max(this.to, at);
    if ("runs" in event) this.count(event);
    else TAKE[event.name]?.(this, event, at);
  }

  /** Of iterations nobody reads each event here: they come as counts. */
  private count({ runs }: Counts): void {
    for (const [id, counted] of Object.entries(runs)) {
      const run = this.runs.get(id);
      if (!run) continue;
      const loop = loopOf(run);
      loop.started += counted.started ?? 0;
      loop.done += counted.done ?? 0;
      loop.failed += counted.failed ?? 0;
      loop.failures = [...loop.failures, ...(counted.failures ?? [])].slice(0, MOST_FAILURES);
    }
  }

  run(event: EventView, at: number): StepRun {
    const id = event.step_run_id ?? event.entity_id;
    let found = this.runs.get(id);
    if (!found) {
      found = {
        ...{ id, step: event.step ?? "", scheduled: at, started: null, ended: null },
        ...{ status: "queued", error: "", tasks: new Map(), loop: null, lost: [], waits: [], worker: "" },
      };
      this.runs.set(id, found);
    }
    return found;
  }
}

type Taking = (line: Timeline, event: EventView, at: number) => void;
type Data = Record<string, any>;

function end(status: string): Taking {
  return (line, event, at) => {
    const run = line.run(event, at);
    run.status = status;
    run.ended = at;
    run.error = (event.data as Data).error?.message ?? "";
  };
}

function loopOf(run: StepRun): LoopCount {
  run.loop ??= { total: null, started: 0, done: 0, failed: 0, failures: [] };
  return run.loop;
}

/** A loop inside an iteration is of a task, and does not end the step. */
function isInner(event: EventView): boolean {
  return (event.parent_id ?? null) !== null;
}

/** Inside a loop only iterations are counted: of ten thousand nobody reads each task here. */
function inIteration(event: EventView): boolean {
  return (event.task_run_id ?? "").split(".").length > 2;
}

function attemptOf(line: Timeline, event: EventView, at: number): Attempt {
  const data = event.data as Data;
  const run = line.run(event, at);
  let task = run.tasks.get(event.task_run_id!);
  if (!task) {
    task = { id: event.task_run_id!, task: String(data.task ?? ""), kind: "", attempts: [] };
    run.tasks.set(task.id, task);
  }
  if (data.kind) task.kind = String(data.kind);
  const number = Number(data.attempt ?? 1);
  let found = task.attempts.find((one) => one.number === number);
  if (!found) {
    found = { number, from: at, to: null, status: "running", do: "", event: null };
    task.attempts.push(found);
  }
  return found;
}

/** What an attempt comes to that ended in an error, by what follows it (TASK-2). */
const ON_ERROR: Record<string, string> = { retry: "retried", continue: "passed", jump: "passed", break: "passed" };

function waited(line: Timeline, event: EventView, at: number): void {
  if (!inIteration(event)) attemptOf(line, event, at).status = "running";
  const run = line.run(event, at);
  run.status = "running";
  const open = run.waits.find((one) => one.to === null);
  if (open) open.to = at;
}

const TAKE: Record<string, Taking> = {
  "step.scheduled": (line, event, at) => void line.run(event, at),
  "step.restored": (line, event, at) => void line.run(event, at),
  "token.claimed": (line, event, at) => {
    line.run(event, at).worker = String((event.data as Data).worker ?? "");
  },
  "step.started": (line, event, at) => {
    const run = line.run(event, at);
    run.started ??= at;
    run.status = "running";
  },
  "step.parked": (line, event, at) => {
    line.run(event, at).status = "waiting";
  },
  "step.done": end("done"),
  "step.failed": end("failed"),
  "lease.expired": (line, event, at) => void line.run(event, at).lost.push(at),
  "loop.started": (line, event, at) => {
    if (isInner(event)) return;
    const run = line.run(event, at);
    if (!run.loop) loopOf(run).total = (event.data as Data).total ?? null;
  },
  "loop.done": (line, event, at) => {
    if (isInner(event)) return;
    const data = event.data as Data;
    const run = line.run(event, at);
    const loop = loopOf(run);
    // A loop ends its step; one that fails it says so in an event of its own.
    if (run.ended === null) [run.status, run.ended] = ["done", at];
    loop.total = data.total ?? loop.total;
    loop.done = data.done ?? loop.done;
    loop.failed = data.failed ?? loop.failed;
    const errors = (data.errors ?? []) as { index: number }[];
    if (Array.isArray(errors)) loop.failures = errors.slice(0, MOST_FAILURES).map((one) => one.index);
  },
  "task.started": (line, event, at) => {
    if (!inIteration(event)) attemptOf(line, event, at);
  },
  "task.done": (line, event, at) => {
    if (inIteration(event)) return;
    const data = event.data as Data;
    const attempt = attemptOf(line, event, at);
    const meta = data.outcome?.meta as { duration_ms?: number } | undefined;
    attempt.to = at;
    // Several events of one report have one time: the tool's own measure tells them apart.
    if (meta?.duration_ms) attempt.from = Math.min(attempt.from, at - meta.duration_ms);
    const run = line.run(event, at);
    if (run.started !== null) run.started = Math.min(run.started, attempt.from);
    attempt.do = String(data.do ?? "");
    attempt.status = data.outcome?.status === "error" ? (ON_ERROR[String(data.do)] ?? "failed") : "done";
    attempt.event = event;
  },
  "wait.started": (line, event, at) => {
    if (!inIteration(event)) attemptOf(line, event, at).status = "waiting";
    const run = line.run(event, at);
    run.status = "waiting";
    run.waits.push({ from: at, to: null });
  },
  "wait.done": (line, event, at) => waited(line, event, at),
  "wait.withdrawn": (line, event, at) => waited(line, event, at),
  "policy.admit.evaluated": (line, event) => {
    const { allow, rule = null } = event.data as Data;
    const found = line.admissions.get(event.step ?? "") ?? { allowed: 0, refused: 0, rule: null };
    if (allow) found.allowed++;
    else [found.refused, found.rule] = [found.refused + 1, rule];
    line.admissions.set(event.step ?? "", found);
  },
  "next.evaluated": (line, event) => {
    const { arcs = [], on = "" } = event.data as Data;
    line.arcs.push({ step: event.step ?? "", on, fired: arcs });
  },
};
