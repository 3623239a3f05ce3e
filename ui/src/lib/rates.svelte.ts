// What the numbers of a server did in the last minutes, while somebody looks at them.
import type { Runtime } from "./api-types";

const KEPT = 150;
type Counts = Record<string, unknown>;

export interface Line {
  title: string;
  unit: string;
  values: number[];
}

interface Sample {
  at: number;
  ended: number;
  requests: number;
  seconds: number;
}

/** What takes two samples has its place from the first on. */
const COMPARED = [["Executions ended", " / s"], ["Requests", " / s"], ["Mean answer", " ms"]] as const;

const sum = (value: unknown): number =>
  typeof value === "number" ? value : Object.values((value ?? {}) as Counts).reduce<number>((all, one) => all + Number(one), 0);

/** Gauges as they are, and rates from one sample to the next. */
export class Rates {
  lines = $state.raw<Line[]>([]);
  #series = new Map<string, Line>();
  #last: Sample | null = null;

  take(told: Runtime): void {
    const counts = told.counts as Counts;
    const executions = (counts.executions ?? {}) as Counts;
    const { answers: requests, seconds } = told.http ?? { answers: 0, seconds: 0 };
    const ended = sum(["completed", "failed", "cancelled"].map((key) => Number(executions[key] ?? 0)));
    const sample = { at: performance.now(), ended, requests, seconds };
    this.#gauge("Executions running", Number(executions.running ?? 0));
    this.#gauge("Parts in the queue", sum(counts.parts_waiting));
    this.#gauge("Leases", Number(counts.leases ?? 0));
    this.#gauge("Slots busy", sum(told.pools.map((pool) => pool.busy)));
    if (this.#last) this.#compare(this.#last, sample);
    else for (const [title, unit] of COMPARED) this.#series.set(title, { title, unit, values: [] });
    this.#last = sample;
    this.lines = [...this.#series.values()];
  }

  #compare(before: Sample, now: Sample): void {
    const passed = (now.at - before.at) / 1000;
    const asked = Math.max(0, now.requests - before.requests);
    this.#gauge("Executions ended", Math.max(0, now.ended - before.ended) / passed, " / s");
    this.#gauge("Requests", asked / passed, " / s");
    this.#gauge("Mean answer", asked ? ((now.seconds - before.seconds) / asked) * 1000 : 0, " ms");
  }

  #gauge(title: string, value: number, unit = ""): void {
    const known = this.#series.get(title)?.values ?? [];
    this.#series.set(title, { title, unit, values: [...known, Math.max(0, value)].slice(-KEPT) });
  }
}
