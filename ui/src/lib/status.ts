// Every status as word, icon and colour: none of them is ever shown alone.
export type Tone = "good" | "bad" | "busy" | "wait" | "calm";
export interface Look {
  word: string;
  icon: string;
  tone: Tone;
}

const LOOKS: Record<string, Look> = {
  queued: { word: "Queued", icon: "clock", tone: "calm" },
  running: { word: "Running", icon: "spin", tone: "busy" },
  paused: { word: "Paused", icon: "pause", tone: "wait" },
  waiting: { word: "Waiting", icon: "clock", tone: "wait" },
  active: { word: "Active", icon: "check", tone: "good" },
  completed: { word: "Completed", icon: "check", tone: "good" },
  done: { word: "Done", icon: "check", tone: "good" },
  failed: { word: "Failed", icon: "cross", tone: "bad" },
  cancelled: { word: "Cancelled", icon: "stop", tone: "calm" },
  interrupted: { word: "Interrupted", icon: "warn", tone: "wait" },
  success: { word: "Success", icon: "check", tone: "good" },
  error: { word: "Error", icon: "cross", tone: "bad" },
  in_progress: { word: "Running", icon: "spin", tone: "busy" },
  skipped: { word: "Skipped", icon: "skip", tone: "calm" },
  revoked: { word: "Revoked", icon: "stop", tone: "calm" },
  expired: { word: "Expired", icon: "clock", tone: "calm" },
  refused: { word: "Refused", icon: "cross", tone: "bad" },
  /** It ended in an error, and its policy did not fail the step. */
  passed: { word: "Went on", icon: "warn", tone: "wait" },
  retried: { word: "Retried", icon: "retry", tone: "wait" },
};

export function lookOf(status: string): Look {
  return LOOKS[status] ?? { word: status, icon: "dot", tone: "calm" };
}

export const ENDED = new Set(["completed", "failed", "cancelled"]);
export const STATUSES = ["running", "queued", "paused", "completed", "failed", "cancelled"] as const;
