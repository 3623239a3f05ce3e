// Named filters of the list of executions, kept in this browser.
const KEY = "noetl-views";

export interface SavedView {
  name: string;
  query: string;
}

function kept(): SavedView[] {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return Array.isArray(found) ? found.filter((one) => typeof one?.name === "string" && typeof one?.query === "string") : [];
  } catch {
    return [];
  }
}

class Views {
  all = $state<SavedView[]>(kept());

  save(name: string, query: string): void {
    this.all = [...this.all.filter((one) => one.name !== name), { name, query }];
    localStorage.setItem(KEY, JSON.stringify(this.all));
  }

  remove(name: string): void {
    this.all = this.all.filter((one) => one.name !== name);
    localStorage.setItem(KEY, JSON.stringify(this.all));
  }
}

export const views = new Views();
