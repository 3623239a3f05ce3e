// What keeps a page fresh: a clock, questions asked again, and the stream of one execution.
import { send, wordsOf } from "./api";
import type { EventView } from "./api-types";

/** The time, for "3 s ago" and bars that grow. */
export const now = $state({ at: Date.now() });
setInterval(() => (now.at = Date.now()), 1000);

/** Asks now and then every `every` ms while the page is looked at; gives back how to stop. */
export function repeat(ask: (signal: AbortSignal) => Promise<void>, every: number): () => void {
  const ending = new AbortController();
  let timer = 0;
  const turn = async () => {
    if (!document.hidden) await ask(ending.signal).catch(() => {});
    if (!ending.signal.aborted) timer = window.setTimeout(turn, every);
  };
  void turn();
  return () => {
    ending.abort();
    clearTimeout(timer);
  };
}

/** What happened inside iterations, as counts by step run: a loop of ten thousand is a few of these. */
export interface Counts {
  seq: number;
  name: "counts";
  timestamp: string;
  runs: Record<string, { step: string; started?: number; done?: number; failed?: number; failures?: number[] }>;
}
export type Told = EventView | Counts;

export interface Following {
  events: (batch: Told[]) => void;
  ended: () => void;
  /** What is wrong with the stream, or nothing. */
  trouble: (words: string) => void;
}

const SOONEST = 500;
const LATEST = 10_000;

/** A batch that takes longer to fold would hold up the page. */
const BATCH = 500;

/** Follows a log from a `seq` on, without gap or double, however often the stream breaks. */
export function followLog(executionId: string, after: number, tell: Following): () => void {
  const ending = new AbortController();
  void (async () => {
    let seen = after;
    let pause = SOONEST;
    while (!ending.signal.aborted) {
      try {
        const address = `/api/executions/${encodeURIComponent(executionId)}/stream?after=${seen}&iterations=false`;
        const answer = await send(address, { signal: ending.signal });
        tell.trouble("");
        for await (const frames of framesOf(answer)) {
          pause = SOONEST;
          const batch: Told[] = [];
          for (const frame of frames) {
            if (frame.name === "end") {
              if (batch.length) tell.events(batch);
              return tell.ended();
            }
            const event = JSON.parse(frame.data) as Told;
            if (event.seq > seen) {
              seen = event.seq;
              batch.push(event);
            }
            if (batch.length === BATCH) {
              tell.events(batch.splice(0));
              await new Promise((go) => setTimeout(go));
              if (ending.signal.aborted) return;
            }
          }
          if (batch.length) tell.events(batch);
        }
      } catch (wrong) {
        if (ending.signal.aborted) return;
        tell.trouble(wordsOf(wrong));
      }
      await new Promise((go) => setTimeout(go, pause));
      pause = Math.min(pause * 2, LATEST);
    }
  })();
  return () => ending.abort();
}

interface Frame {
  name: string;
  data: string;
}

async function* framesOf(answer: Response): AsyncGenerator<Frame[]> {
  const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n\n");
    rest = parts.pop() ?? "";
    const frames = parts.map(frameOf).filter((frame) => frame !== null);
    if (frames.length) yield frames;
  }
}

export function frameOf(text: string): Frame | null {
  const frame: Frame = { name: "message", data: "" };
  for (const line of text.split("\n")) {
    if (line.startsWith("event: ")) frame.name = line.slice(7);
    else if (line.startsWith("data: ")) frame.data += line.slice(6);
  }
  return frame.data ? frame : null;
}
