// References to values that lie outside the log, as answers show them.
export interface StoredValue {
  key: string;
  execution: string;
  checksum: string;
  size: number;
  hint: string | null;
}
const MOST = 8;
const DEEPEST = 6;
const WIDEST = 500;

function storedIn(value: object): StoredValue | null {
  const told = (value as Record<string, unknown>).$ref as Record<string, unknown> | undefined;
  const key = typeof told?.key === "string" ? told.key : "";
  const found = /^([^/]+)\/([0-9a-f]{64})$/.exec(key);
  if (!told || !found) return null;
  const hint = typeof told.schema_hint === "string" ? told.schema_hint : null;
  return { key, execution: found[1]!, checksum: found[2]!, size: Number(told.size) || 0, hint };
}

/** The first of them in a value, whatever they are nested in. */
export function storedValues(value: unknown): StoredValue[] {
  const found = new Map<string, StoredValue>();
  let level: unknown[] = [value];
  for (let depth = 0; level.length && depth < DEEPEST && found.size < MOST; depth++) {
    const below: unknown[] = [];
    for (const one of level.slice(0, WIDEST)) {
      if (typeof one !== "object" || one === null) continue;
      const stored = storedIn(one);
      if (stored) found.set(stored.key, stored);
      else below.push(...Object.values(one).slice(0, WIDEST));
    }
    level = below;
  }
  return [...found.values()].slice(0, MOST);
}
