// Who is here, and what they may do.
import { call, Refusal, whenSignedOut } from "./api";
import type { Me } from "./api-types";

const INCLUDES: Record<string, string[]> = {
  viewer: ["viewer"],
  approver: ["viewer", "approver"],
  operator: ["viewer", "approver", "operator"],
  author: ["viewer", "approver", "operator", "author"],
  admin: ["viewer", "approver", "operator", "author", "admin"],
};

class Session {
  me = $state<Me | null>(null);
  state = $state<"asking" | "in" | "out" | "away">("asking");

  async ask(): Promise<void> {
    const ticket = location.hash.slice(1);
    if (ticket.startsWith("ticket_")) {
      history.replaceState({}, "", location.pathname + location.search);
      await this.signIn(ticket).catch(() => {});
      if (this.state === "in") return;
    }
    try {
      this.me = await call("sessions_me");
      this.state = "in";
    } catch (wrong) {
      this.state = wrong instanceof Refusal && [401, 403].includes(wrong.status) ? "out" : "away";
    }
  }

  async signIn(token: string): Promise<void> {
    this.me = await call("sessions_sign_in", { body: { token } });
    this.state = "in";
  }

  async signOut(): Promise<void> {
    await call("sessions_sign_out");
    this.me = null;
    this.state = "out";
  }

  may(role: string): boolean {
    return INCLUDES[this.me?.role ?? ""]?.includes(role) ?? false;
  }
}

export const session = new Session();
whenSignedOut(() => {
  if (session.state === "in") session.state = "out";
});
