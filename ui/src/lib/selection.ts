// Which executions a list asks for: the address says it, the API answers it.
import { call } from "./api";
import type { Listed, Operations } from "./api-types";
import { ENDED } from "./status";

export const PAGE = 50;
export const SINCE: Record<string, [string, number]> = {
  "1h": ["Last hour", 3_600_000],
  "24h": ["Last 24 hours", 86_400_000],
  "7d": ["Last 7 days", 604_800_000],
};
/** What a saved view keeps, and what "show all" takes away. */
export const FILTERS = ["status", "path", "q", "label", "key", "id", "since", "from", "to"] as const;
type Question = NonNullable<Operations["executions_page"]["query"]>;
/** More than this are not chosen at once. */
export const MOST = 1000;

export function questionOf(get: (key: string) => string): Question {
  if (get("id")) return { prefix: get("id"), limit: PAGE };
  if (get("key")) return { key: get("key"), limit: PAGE };
  const path = get("path");
  const lately = SINCE[get("since")];
  return {
    status: (get("status") || null) as Question["status"],
    path: path && !/[*?[]/.test(path) ? `*${path}*` : path,
    text: get("q"),
    // A label that is not written to its end yet narrows nothing.
    label: /^[^=]+=./.test(get("label")) ? get("label") : "",
    since: lately ? new Date(Date.now() - lately[1]).toISOString() : moment(get("from")),
    until: lately ? null : moment(get("to")),
    limit: PAGE,
  };
}

function moment(local: string): string | null {
  const at = new Date(local);
  return local && !Number.isNaN(at.getTime()) ? at.toISOString() : null;
}

/** All that match, up to MOST. */
export async function allOf(question: Question): Promise<Listed[]> {
  const found: Listed[] = [];
  let cursor: string | null = null;
  do {
    const page: { executions: Listed[]; next: string | null } = await call("executions_page", {
      query: { ...question, limit: 200, cursor },
    });
    found.push(...page.executions);
    cursor = page.next;
  } while (cursor && found.length < MOST);
  return found.slice(0, MOST);
}

export type Deed = "cancel" | "restart";
export const FITS: Record<Deed, (one: Listed) => boolean> = {
  cancel: (one) => !ENDED.has(one.status),
  restart: (one) => one.status === "failed" || one.status === "cancelled",
};
const ACTS = { cancel: "executions_cancel", restart: "restarts_restart" } as const;
const AT_ONCE = 4;

/** One order for each, a few at a time; what was refused, and why. */
export async function actOn(deed: Deed, rows: Listed[], done: () => void): Promise<[string, string][]> {
  const refused: [string, string][] = [];
  const ahead = rows.map((one) => one.execution_id);
  const take = async () => {
    for (let id = ahead.shift(); id; id = ahead.shift()) {
      try {
        await call(ACTS[deed], { path: { execution_id: id }, body: {} });
      } catch (wrong) {
        refused.push([id, wrong instanceof Error ? wrong.message : String(wrong)]);
      }
      done();
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, take));
  return refused;
}
