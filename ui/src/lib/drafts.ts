// Texts that are being written, kept by the browser for as long as its tab is open.
const key = (name: string) => `noetl-draft:${name}`;

export function draftOf(name: string): string | null {
  return sessionStorage.getItem(key(name));
}

/** Without a text there is no draft any more. */
export function keepDraft(name: string, text: string | null): void {
  try {
    if (text === null) sessionStorage.removeItem(key(name));
    else sessionStorage.setItem(key(name), text);
  } catch {
    // Too large for the browser to keep: it is in the editor.
  }
}
