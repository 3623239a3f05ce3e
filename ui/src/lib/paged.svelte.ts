// A list that is asked for page by page, and whose first page stays fresh.
import { wordsOf } from "./api";
import { repeat } from "./live.svelte";

interface Page<T> {
  rows: T[];
  next: string | null;
}

export class Paged<T> {
  rows = $state.raw<T[]>([]);
  next = $state<string | null>(null);
  wrong = $state("");
  asked = $state(false);

  constructor(
    private readonly ask: (cursor: string | null, signal?: AbortSignal) => Promise<Page<T>>,
    private readonly keyOf: (row: T) => string,
  ) {}

  /** Keeps the first page fresh; rows of later pages stay where they are. */
  follow(every: number): () => void {
    let first = true;
    return repeat((signal) => {
      const asked = first ? this.begin(signal) : this.refresh(signal);
      first = false;
      return asked;
    }, every);
  }

  async begin(signal?: AbortSignal): Promise<void> {
    await this.guarded(async () => {
      const page = await this.ask(null, signal);
      [this.rows, this.next] = [page.rows, page.next];
    }, signal);
  }

  private async refresh(signal: AbortSignal): Promise<void> {
    await this.guarded(async () => {
      const page = await this.ask(null, signal);
      const fresh = new Set(page.rows.map(this.keyOf));
      const later = this.rows.length > page.rows.length && page.next !== null;
      const kept = later ? this.rows.filter((row) => !fresh.has(this.keyOf(row))) : [];
      if (!later) this.next = page.next;
      this.rows = [...page.rows, ...kept];
    }, signal);
  }

  async more(): Promise<void> {
    await this.guarded(async () => {
      const page = await this.ask(this.next);
      const known = new Set(this.rows.map(this.keyOf));
      this.rows = [...this.rows, ...page.rows.filter((row) => !known.has(this.keyOf(row)))];
      this.next = page.next;
    });
  }

  private async guarded(work: () => Promise<void>, signal?: AbortSignal): Promise<void> {
    try {
      await work();
      this.wrong = "";
    } catch (refused) {
      if (!signal?.aborted) this.wrong = wordsOf(refused);
    }
    this.asked = true;
  }
}
