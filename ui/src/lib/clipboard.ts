// Puts a text on the clipboard, also where the page came by plain HTTP from another machine or the
// browser lets no page write there by itself.
export async function copyText(text: string): Promise<void> {
  // Browsers give it to pages by HTTPS or from this machine alone.
  if (navigator.clipboard) {
    try {
      return await navigator.clipboard.writeText(text);
    } catch {
      // Denied: what is selected may still be copied.
    }
  }
  const field = document.createElement("textarea");
  field.value = text;
  field.readOnly = true;
  field.className = "hidden";
  // In a dialog, as only what is inside of it can be selected.
  (document.querySelector("dialog[open]") ?? document.body).append(field);
  const focused = document.activeElement as HTMLElement | null;
  field.select();
  document.execCommand("copy");
  field.remove();
  focused?.focus();
}
