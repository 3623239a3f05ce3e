// Asks the API: typed by the OpenAPI document, refused in the server's own words.
import { OPERATIONS, type ErrorBody, type Operations } from "./api-types";

export class Refusal extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly hint = "",
  ) {
    super(message);
  }
}

type Name = keyof Operations;
type Values = Record<string, unknown>;
export interface Given<K extends Name> {
  path?: Operations[K]["path"];
  query?: Operations[K]["query"];
  body?: Operations[K]["body"];
  signal?: AbortSignal;
}

let onSignedOut: () => void = () => {};
/** Who is told when the server no longer knows this browser. */
export function whenSignedOut(tell: () => void): void {
  onSignedOut = tell;
}

export function addressOf(template: string, path: Values = {}, query: Values = {}): string {
  const filled = template.replace(/\{(\w+)\}/g, (_, key: string) =>
    String(path[key]).split("/").map(encodeURIComponent).join("/"),
  );
  const asked = new URLSearchParams();
  for (const [key, value] of Object.entries(query))
    if (value !== undefined && value !== null && value !== "") asked.set(key, String(value));
  return asked.size ? `${filled}?${asked}` : filled;
}

export async function call<K extends Name>(
  name: K,
  given: Given<K> = {},
): Promise<Operations[K]["answer"]> {
  const [method, template] = OPERATIONS[name];
  const answer = await send(addressOf(template, given.path as Values, given.query as Values), {
    method,
    ...(given.signal ? { signal: given.signal } : {}),
    ...(given.body === undefined
      ? {}
      : { body: JSON.stringify(given.body), headers: { "content-type": "application/json" } }),
  });
  return answer.status === 204 ? (null as Operations[K]["answer"]) : answer.json();
}

/** A request that must be answered; whatever else came is a Refusal. */
export async function send(address: string, init: RequestInit = {}): Promise<Response> {
  let answer: Response;
  try {
    answer = await fetch(address, { credentials: "same-origin", ...init });
  } catch (wrong) {
    if (wrong instanceof DOMException && wrong.name === "AbortError") throw wrong;
    throw new Refusal(0, "unreachable", "The server does not answer.", "Trying again…");
  }
  if (answer.ok) return answer;
  const told = (await answer.json().catch(() => null)) as ErrorBody | null;
  if (answer.status === 401) onSignedOut();
  throw new Refusal(
    answer.status,
    told?.error.code ?? "refused",
    told?.error.message ?? `The server answered ${answer.status}.`,
    told?.error.hint ?? "",
  );
}

export function wordsOf(wrong: unknown): string {
  return wrong instanceof Error ? wrong.message : String(wrong);
}
