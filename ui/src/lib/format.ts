// How times, durations and values are written.
export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 1440) return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  return `${Math.floor(minutes / 1440)} d ${Math.floor((minutes % 1440) / 60)} h`;
}

export function ago(at: string, now: number): string {
  const passed = now - Date.parse(at);
  if (passed < 0) return `in ${duration(-passed)}`;
  if (passed < 5000) return "just now";
  if (passed < 60_000) return `${Math.floor(passed / 1000)} s ago`;
  if (passed < 3_600_000) return `${Math.floor(passed / 60_000)} min ago`;
  if (passed < 86_400_000) return `${Math.floor(passed / 3_600_000)} h ago`;
  return day(at);
}

const DAY = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
export function day(at: string): string {
  return DAY.format(new Date(at));
}

/** To the millisecond, for logs. */
export function clock(at: string): string {
  const time = new Date(at);
  const two = (value: number) => String(value).padStart(2, "0");
  const millis = String(time.getMilliseconds()).padStart(3, "0");
  return `${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}.${millis}`;
}

const LONGEST = 100_000;
/** A value as JSON on several lines; a huge one is cut, and says so. */
export function pretty(value: unknown): string {
  const text = typeof value === "string" ? value : (JSON.stringify(value, null, 2) ?? "");
  return cut(text, LONGEST);
}

/** Inputs by name, as a playbook has them: code keeps its lines, and a text is not quoted twice. */
export function written(inputs: unknown): string {
  if (inputs === null || typeof inputs !== "object" || Array.isArray(inputs) || "$ref" in inputs) return pretty(inputs);
  const lines = Object.entries(inputs).map(([name, value]) => {
    const text = pretty(value).replace(/\n$/, "");
    return text.includes("\n") ? `${name}:\n  ${text.replaceAll("\n", "\n  ")}` : `${name}: ${text}`;
  });
  return cut(lines.join("\n"), LONGEST);
}

export function brief(value: unknown, most = 160): string {
  return cut(typeof value === "string" ? value : (JSON.stringify(value) ?? ""), most);
}

export function cut(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most)}… (${text.length.toLocaleString()} characters)` : text;
}

export function many(count: number, one: string, more = `${one}s`): string {
  return `${count.toLocaleString()} ${count === 1 ? one : more}`;
}
