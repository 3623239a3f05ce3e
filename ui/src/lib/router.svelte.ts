// Where the reader is: the address holds all of it, so that it can be shared and gone back to.
const BASE = "/ui/";

class Route {
  path = $state("");
  query = $state(new URLSearchParams());

  read(): void {
    this.path = decodeURI(location.pathname).replace(BASE, "").replace(/\/$/, "");
    this.query = new URLSearchParams(location.search);
  }

  get(key: string): string {
    return this.query.get(key) ?? "";
  }

  /** Changes a part of the address; what is empty leaves it. */
  set(changes: Record<string, string>, { keep = false } = {}): void {
    const next = new URLSearchParams(this.query);
    for (const [key, value] of Object.entries(changes))
      if (value) next.set(key, value);
      else next.delete(key);
    const address = next.size ? `${location.pathname}?${next}` : location.pathname;
    history[keep ? "pushState" : "replaceState"]({}, "", address);
    this.query = next;
  }

  go(to: string): void {
    history.pushState({}, "", BASE + to);
    this.read();
    scrollTo(0, 0);
  }
}

export const route = new Route();

export function href(path: string, query: Record<string, string> = {}): string {
  const asked = new URLSearchParams(Object.entries(query).filter(([, value]) => value));
  return BASE + path + (asked.size ? `?${asked}` : "");
}

/** Links inside the application change the address without loading it again. */
export function follow(event: MouseEvent): void {
  const link = (event.target as Element).closest("a");
  if (!link || event.defaultPrevented || event.button !== 0) return;
  if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey || link.target) return;
  const url = new URL(link.href);
  if (url.origin !== location.origin || !url.pathname.startsWith(BASE)) return;
  event.preventDefault();
  history.pushState({}, "", url);
  route.read();
  scrollTo(0, 0);
}
