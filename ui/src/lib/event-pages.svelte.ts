// The whole log as a list of which only the pages in view are loaded.
import { call, wordsOf } from "./api";
import type { EventView } from "./api-types";

const PAGE = 200;
/** Pages that are kept; the others are loaded again when they come into view. */
const KEPT = 60;
/** Pages that a search reads of what is appended at once. */
const NEWEST = 4;

export interface LogLine {
  seq: number;
  /** Nothing while it is loaded. */
  event: EventView | null;
}

export class EventPages {
  length = $state(0);
  wrong = $state("");
  /** Counts what was loaded, so that the list is drawn again. */
  private turn = $state(0);
  private readonly pages = new Map<number, EventView[]>();
  private readonly asked = new Set<number>();

  constructor(private readonly executionId: string) {}

  /** The log has grown to this `seq`. */
  grow(seq: number): void {
    if (seq > this.length) this.length = seq;
  }

  /** As of an array, so that lists can show it; what is missing is loaded. */
  slice(from: number, to: number): LogLine[] {
    void this.turn;
    const lines: LogLine[] = [];
    for (let place = Math.max(0, from); place < Math.min(to, this.length); place++) {
      const number = Math.floor(place / PAGE);
      const event = this.pages.get(number)?.[place % PAGE] ?? null;
      if (!event) queueMicrotask(() => void this.load(number));
      lines.push({ seq: place + 1, event });
    }
    return lines;
  }

  get loaded(): EventView[] {
    void this.turn;
    return [...this.pages].sort(([one], [other]) => one - other).flatMap(([, page]) => page);
  }

  find(seq: number): EventView | null {
    void this.turn;
    const number = Math.floor((seq - 1) / PAGE);
    const found = this.pages.get(number)?.[(seq - 1) % PAGE];
    if (!found && seq > 0 && seq <= this.length) queueMicrotask(() => void this.load(number));
    return found ?? null;
  }

  /** The nearest pages before those that are loaded: for a search that found too little. */
  async earlier(pages: number): Promise<void> {
    const known = [...this.pages.keys()];
    let next = (known.length ? Math.min(...known) : Math.ceil(this.length / PAGE)) - 1;
    for (let count = 0; count < pages && next >= 0 && !this.wrong; count++) await this.load(next--);
  }

  /** What was appended to the pages that are loaded; of very much, the newest. */
  async latest(): Promise<void> {
    const last = Math.floor((this.length - 1) / PAGE);
    const known = Math.max(...this.pages.keys());
    for (let number = Math.max(known, last - NEWEST); number <= last && !this.wrong; number++) await this.load(number);
  }

  get first(): number {
    void this.turn;
    return this.pages.size ? Math.min(...this.pages.keys()) * PAGE + 1 : this.length + 1;
  }

  private async load(number: number): Promise<void> {
    const known = this.pages.get(number)?.length ?? 0;
    const whole = Math.min(PAGE, this.length - number * PAGE);
    if (known >= whole || this.asked.has(number)) return;
    this.asked.add(number);
    try {
      const query = { after: number * PAGE, limit: PAGE };
      const page = await call("events_page", { path: { execution_id: this.executionId }, query });
      this.pages.delete(number);
      this.pages.set(number, page.events);
      for (const oldest of this.pages.keys()) {
        if (this.pages.size <= KEPT) break;
        this.pages.delete(oldest);
      }
      this.wrong = "";
      this.turn++;
    } catch (refused) {
      this.wrong = wordsOf(refused);
    }
    this.asked.delete(number);
  }
}
