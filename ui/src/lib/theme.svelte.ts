// Light, dark, or as the machine has it; kept in this browser.
type Theme = "light" | "dark" | "auto";
const KEY = "noetl-theme";
const NEXT: Record<Theme, Theme> = { auto: "light", light: "dark", dark: "auto" };

function kept(): Theme {
  const found = localStorage.getItem(KEY);
  return found === "light" || found === "dark" ? found : "auto";
}

class Chosen {
  theme = $state<Theme>(kept());

  show(): void {
    document.documentElement.dataset.theme = this.theme;
  }

  turn(): void {
    this.theme = NEXT[this.theme];
    localStorage.setItem(KEY, this.theme);
    this.show();
  }
}

export const chosen = new Chosen();
