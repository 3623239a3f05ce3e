// Written by `make docs` from the OpenAPI document; do not edit.

export interface AdmissionRefusal {
  token_id: string;
  rule: number;
  line: number;
  guard: string;
}

export interface AnswerRequest {
  approved: boolean;
  step?: string | null;
  reason?: string;
  fields?: Record<string, unknown>;
}

export interface ApiError {
  code: string;
  message: string;
  hint?: string;
  findings?: (Finding)[] | null;
  more?: number;
  execution_id?: string | null;
}

export interface AuditPage {
  orders: (AuditView)[];
}

export interface AuditView {
  noted_at: string;
  who: string;
  role: string;
  what: string;
  about: string;
  result: "done" | "refused" | "unknown";
  detail: string;
}

export interface Backfill {
  times: (BackfillTime)[];
  dry_run: boolean;
  timezone?: string | null;
}

export interface BackfillRequest {
  begin: string;
  end: string;
  dry_run?: boolean;
}

export interface BackfillTime {
  at: string;
  execution_id?: string | null;
  before?: boolean;
  error?: string | null;
}

export interface BatchRequest {
  executions: (KeyedRequest)[];
}

export interface Begun {
  execution?: StartedExecution | null;
  error?: ApiError | null;
}

export interface BodyPreview {
  kind: string;
  count: number | null;
  value: unknown;
  cut: boolean;
}

export interface Box {
  name: string;
  desc: string;
  marks: (Mark)[];
  rows: (CardRow)[];
  hidden?: number;
  entry?: boolean;
  final?: boolean;
}

export interface CacheClearRequest {
  path?: string | null;
  task?: string | null;
  key?: string | null;
}

export interface CacheCleared {
  removed: number;
}

export interface CachePage {
  entries: (CacheView)[];
}

export interface CacheView {
  path: string;
  task: string;
  key: string;
  execution_id: string;
  kept_at: string;
  expires_at: string;
  size: number;
}

export interface CardRow {
  label: string;
  kind: string;
  note?: string;
  depth?: number;
}

export interface CaseVerdict {
  name: string;
  ok: boolean;
  problems: (string)[];
  duration_ms: number;
}

export interface CatalogVersion {
  playbook_id: string;
  path: string;
  version: number;
  version_label: string | null;
  digest: string;
  registered_at: string;
  name: string;
  description: string | null;
  labels: Record<string, string>;
  migrated: boolean;
}

export interface Cause {
  step: string;
  error: Record<string, unknown>;
  step_run_id?: string | null;
  index?: number | null;
  line?: number | null;
  chain?: (FailedTask)[];
  taken_by?: (TakingStep)[];
}

export interface Credential {
  name: string;
  kind: string;
  key_id: string;
  updated_at: string;
}

export interface CredentialPage {
  credentials: (Credential)[];
  next: string | null;
}

export interface CredentialRequest {
  kind: string;
  fields: Record<string, unknown>;
}

export interface CursorRequest {
  text: string;
  line: number;
  column: number;
}

export interface Differences {
  left: string;
  right: string;
  same: number;
  parted: number;
  differences: (TaskDifference)[];
}

export interface Dropped {
  step: string;
  reason: string;
}

export interface Edge {
  source: number;
  target: number;
  label: string;
  failure?: boolean;
}

export interface EntryPage {
  entries: (CatalogVersion)[];
  next: string | null;
}

export interface EntryText {
  playbook_id: string;
  path: string;
  version: number;
  version_label: string | null;
  digest: string;
  registered_at: string;
  name: string;
  description: string | null;
  labels: Record<string, string>;
  migrated: boolean;
  text: string;
  original: string | null;
}

export interface ErrorBody {
  error: ApiError;
}

export interface EventPage {
  events: (EventView)[];
  after: number;
  more: boolean;
}

export interface EventView {
  event_id: string;
  seq: number;
  execution_id: string;
  timestamp: string;
  source: string;
  name: string;
  entity: string;
  entity_id: string;
  status: string;
  step: string | null;
  step_run_id: string | null;
  task_run_id: string | null;
  trace_id: string;
  parent_id: string | null;
  data: Record<string, unknown>;
}

export interface ExecuteRequest {
  playbook_id?: string | null;
  path?: string | null;
  version?: number | string | null;
  payload?: Record<string, unknown>;
  ctx?: Record<string, unknown>;
}

export interface ExecutionBatch {
  executions: (Begun)[];
}

export interface ExecutionPage {
  executions: (Listed)[];
  next: string | null;
}

export interface ExecutionState {
  execution_id: string;
  seq: number;
  status: string;
  ctx: Record<string, unknown>;
  tokens: (unknown)[];
  runs: (unknown)[];
  loops: (unknown)[];
}

export interface ExplainedRewrite {
  code: string;
  line: number;
  new_line: number;
  path: string;
  old: string;
  new: string;
  message: string;
  why?: string;
}

export interface Explanation {
  execution_id: string;
  path: string;
  status: string;
  interrupted: boolean;
  duration_ms: number;
  failures: number;
  causes: (Cause)[];
  failures_handled?: number;
  handled?: (Cause)[];
  errors_passed?: number;
  went_on?: (PassedError)[];
  tolerated?: (ToleratedLoop)[];
  waits: (WaitReason)[];
  stopped?: Stopped | null;
  refused?: (AdmissionRefusal)[];
  dropped?: (Dropped)[];
  unmatched?: (Unmatched)[];
}

export interface FailedTask {
  task: string;
  kind: string;
  task_run_id: string;
  attempt: number;
  error: Record<string, unknown>;
  started_at?: string | null;
  duration_ms?: number | null;
  index?: number | null;
  rule?: number | null;
  policy?: boolean;
  when?: boolean | string | null;
  line?: number | null;
  inputs?: Record<string, unknown>;
  rendered?: Record<string, unknown>;
  traceback?: (string)[];
  http_status?: number | null;
  body?: string | null;
  place?: (string)[];
  printed?: (string)[];
  do?: string;
}

export interface Finding {
  code: string;
  severity: "error" | "warning";
  line: number;
  column: number;
  path: string;
  message: string;
  hint: string;
}

export interface FoundFault {
  finding: Finding;
  end: number;
  fix: TextEdit | null;
}

export interface Health {
  status: "ok" | "waiting";
}

export interface HookAnswer {
  execution: Listed;
  result: Summary | null;
}

export interface HttpTotals {
  answers: number;
  seconds: number;
}

export interface KeyedRequest {
  playbook_id?: string | null;
  path?: string | null;
  version?: number | string | null;
  payload?: Record<string, unknown>;
  ctx?: Record<string, unknown>;
  key?: string | null;
}

export interface LinePage {
  lines: (TaskLine)[];
  next: string | null;
}

export interface Listed {
  execution_id: string;
  path: string;
  version: string | null;
  status: string;
  interrupted: boolean;
  started_at: string;
  updated_at: string;
  finished_at: string | null;
  duration_ms: number;
  parent_execution_id: string | null;
  error: string | null;
  note?: string | null;
  origin_execution_id?: string | null;
  seq?: number;
}

export interface Mark {
  sort: "join" | "admit" | "loop" | "fork";
  text: string;
}

export interface Me {
  auth: boolean;
  name: string;
  role: string;
}

export interface OrderRequest {
  reason?: string;
}

export interface Outline {
  workload: Record<string, unknown>;
  boxes: (Box)[];
  links: (Edge)[];
}

export interface PassedError {
  task: string;
  kind: string;
  task_run_id: string;
  attempt: number;
  error: Record<string, unknown>;
  started_at?: string | null;
  duration_ms?: number | null;
  index?: number | null;
  rule?: number | null;
  policy?: boolean;
  when?: boolean | string | null;
  line?: number | null;
  inputs?: Record<string, unknown>;
  rendered?: Record<string, unknown>;
  traceback?: (string)[];
  http_status?: number | null;
  body?: string | null;
  place?: (string)[];
  printed?: (string)[];
  do?: string;
  step: string;
  again?: string;
}

export interface PersonAwaited {
  execution_id: string;
  path: string;
  wait: WaitReason;
}

export interface Pool {
  name: string;
  workers: number;
  slots: number;
  busy: number;
}

export interface PoolLimit {
  name: string;
  at_once: number;
  set_at: string;
}

export interface PoolLimits {
  pools: (PoolLimit)[];
}

export interface PoolRequest {
  at_once: number;
}

export interface PruneRequest {
  older_than: number;
  status?: ("cancelled" | "completed" | "failed")[];
  path?: string;
  labels?: Record<string, string>;
  archive?: string | null;
  form?: "jsonl" | "parquet";
  dry_run?: boolean;
  limit?: number;
}

export interface Pruned {
  executions: (string)[];
  bodies?: number;
}

export interface RegisterAnswer {
  entry: CatalogVersion;
  fresh: boolean;
  findings: (Finding)[];
  more?: number;
}

export interface RegisterRequest {
  text: string;
  migrate?: boolean;
}

export interface RestartPlan {
  chosen: (string)[];
  steps: (string)[];
  iterations: number;
  tasks: number;
  kept: number;
}

export interface RestartPlanRequest {
  chosen?: (string)[];
}

export interface RestartRequest {
  chosen?: (string)[];
  version?: number | string | null;
  payload?: Record<string, unknown>;
}

export interface Runtime {
  server: string;
  version: string;
  servers: (ServerView)[];
  workers: (WorkerView)[];
  pools: (Pool)[];
  waits_for: (string)[];
  counts: Record<string, unknown>;
  http?: HttpTotals | null;
}

export interface ServerView {
  name: string;
  address: string;
  version: string;
  started_at: string;
  seen_at: string;
}

export interface SignInRequest {
  token: string;
}

export interface SignalRequest {
  name: string;
  data?: unknown;
  id?: string | null;
}

export interface Standing {
  execution_id: string;
  path: string;
  version: string | null;
  status: string;
  interrupted: boolean;
  owner: string | null;
  seq: number;
  started_at: string;
  updated_at: string;
  finished_at: string | null;
  duration_ms: number;
  error: Record<string, unknown> | null;
  steps: (Record<string, unknown>)[];
  waits: (WaitReason)[];
  refused?: string | null;
  errors_passed?: number;
  failures_handled?: number;
  origin_execution_id?: string | null;
  trigger?: string | null;
  parent_execution_id?: string | null;
  occurrence?: string | null;
}

export interface StartedExecution {
  execution_id: string;
  path: string;
  version: string | null;
  status: string;
  interrupted: boolean;
  started_at: string;
  updated_at: string;
  finished_at: string | null;
  duration_ms: number;
  parent_execution_id: string | null;
  error: string | null;
  note?: string | null;
  origin_execution_id?: string | null;
  seq?: number;
  warnings?: (Finding)[];
}

export interface Stopped {
  by: string;
  reason: string;
}

export interface Summary {
  execution_id: string;
  status: string;
  ctx: Record<string, unknown>;
  result: unknown;
  error: Record<string, unknown> | null;
  steps: (Record<string, unknown>)[];
  duration_ms: number;
  errors_passed?: number;
  failures_handled?: number;
}

export interface TakingStep {
  step: string;
  line: number | null;
  status: string;
}

export interface TaskDifference {
  step: string;
  run: number;
  task: string;
  place: string;
  within?: string;
  left: TaskSide | null;
  right: TaskSide | null;
}

export interface TaskLine {
  timestamp: string;
  step: string;
  task_run_id: string;
  attempt: number;
  stream: string;
  text: string;
}

export interface TaskSide {
  execution_id: string;
  status: string;
  attempts: number;
  result?: string | null;
  error?: Record<string, unknown> | null;
}

export interface TemplateRequest {
  template: string;
  seq?: number | null;
  event?: number | null;
}

export interface TemplateTried {
  ok: boolean;
  value: unknown;
  kind: string;
  size: number;
  cut: boolean;
  error: string | null;
  meant: string | null;
  names: Record<string, (string)[]>;
}

export interface TestsRequest {
  text: string;
  tests: string;
}

export interface TestsRun {
  passed: number;
  failed: number;
  tests: (CaseVerdict)[];
}

export interface TextChecked {
  findings: (FoundFault)[];
  more: number;
  older: boolean;
  path: string | null;
  outline: Outline | null;
}

export interface TextEdit {
  title: string;
  line: number;
  start: number;
  end: number;
  text: string;
}

export interface TextOffer {
  name: string;
  summary: string;
  about: string;
  sort: "key" | "value" | "name";
  insert: string;
  back: number;
}

export interface TextOffers {
  offers: (TextOffer)[];
}

export interface TextTranslated {
  text: string;
  changed: boolean;
  complete: boolean;
  rewrites: (ExplainedRewrite)[];
  findings: (Finding)[];
  more?: number;
}

export interface TokenMade {
  token_id: string;
  name: string;
  role: string;
  pool: string | null;
  created_at: string;
  expires_at: string | null;
  revoked_at: string | null;
  token: string;
}

export interface TokenPage {
  tokens: (TokenView)[];
  next: string | null;
}

export interface TokenRequest {
  name: string;
  role: "admin" | "approver" | "author" | "operator" | "viewer" | "worker";
  expires_in?: number | null;
  pool?: string | null;
}

export interface TokenView {
  token_id: string;
  name: string;
  role: string;
  pool: string | null;
  created_at: string;
  expires_at: string | null;
  revoked_at: string | null;
}

export interface ToleratedLoop {
  step: string;
  line: number | null;
  failed: number;
  total: number;
  first?: ((unknown)[])[];
  again?: string;
}

export interface Trial {
  playbook_id: string | null;
  payload: Record<string, unknown> | null;
  key: string;
  problem: string | null;
  warnings?: (Finding)[];
}

export interface TrialRequest {
  at?: string | null;
  data?: unknown;
  headers?: Record<string, string>;
}

export interface TriggerDetail {
  path: string;
  kind: string;
  version: number;
  paused: boolean;
  planned_at: string | null;
  last_at: string | null;
  last_execution_id: string | null;
  skipped_at: string | null;
  skipped_why: string | null;
  waits_for: string | null;
  timezone?: string | null;
  name: string;
  playbook: string;
  playbook_version: number | string | null;
  on?: Record<string, unknown>;
  payload?: Record<string, unknown> | null;
  upcoming: (string)[];
  problem: string | null;
  unproved: number;
  unproved_why?: string | null;
}

export interface TriggerPage {
  triggers: (TriggerView)[];
  next: string | null;
}

export interface TriggerView {
  path: string;
  kind: string;
  version: number;
  paused: boolean;
  planned_at: string | null;
  last_at: string | null;
  last_execution_id: string | null;
  skipped_at: string | null;
  skipped_why: string | null;
  waits_for: string | null;
  timezone?: string | null;
}

export interface Unmatched {
  step: string;
  line: number | null;
  never_ran: (string)[];
}

export interface ValidateRequest {
  text: string;
}

export interface Validated {
  valid: boolean;
  findings: (Finding)[];
  more?: number;
}

export interface Verified {
  ok: boolean;
  rows: number;
  message: string;
}

export interface WaitReason {
  step: string;
  kind: "task" | "worker" | "timer" | "signal" | "approval" | "any" | "loop" | "refused" | "join" | "paused" | "limit";
  words: string;
  place?: string | null;
  step_run_id?: string | null;
  token_id?: string | null;
  task?: string | null;
  attempt?: number | null;
  until?: string | null;
  pool?: string | null;
  since?: string | null;
  missing?: (string)[];
  task_run_id?: string | null;
  title?: string | null;
  form?: Record<string, unknown>;
  roles?: (string)[];
  answers?: (string)[];
  signals?: (string)[];
  question?: string | null;
}

export interface WaitingPage {
  waiting: (PersonAwaited)[];
  next: string | null;
}

export interface WordAbout {
  about: string | null;
}

export interface WorkerView {
  name: string;
  pool: string;
  slots: number;
  busy: number;
  version: string;
  host: string;
  pid: number;
  started_at: string;
  seen_at: string;
  server: string | null;
}

export interface Operations {
  catalog_register: {
    path: {  };
    query: { migrate?: boolean };
    body: RegisterRequest;
    answer: RegisterAnswer;
  };
  catalog_page: {
    path: {  };
    query: { kind?: "playbook" | "trigger" | null; cursor?: string | null; limit?: number };
    body: undefined;
    answer: EntryPage;
  };
  catalog_entry: {
    path: { path: string };
    query: { version?: string | null };
    body: undefined;
    answer: EntryText;
  };
  catalog_remove: {
    path: { path: string };
    query: { version?: string | null };
    body: undefined;
    answer: null;
  };
  catalog_versions: {
    path: { path: string };
    query: { cursor?: string | null; limit?: number };
    body: undefined;
    answer: EntryPage;
  };
  catalog_outline: {
    path: { path: string };
    query: { version?: string | null };
    body: undefined;
    answer: Outline;
  };
  catalog_validate: {
    path: {  };
    query: {  };
    body: ValidateRequest;
    answer: Validated;
  };
  catalog_schema: {
    path: {  };
    query: { kind?: "playbook" | "trigger" };
    body: undefined;
    answer: Record<string, unknown>;
  };
  editing_check: {
    path: {  };
    query: {  };
    body: ValidateRequest;
    answer: TextChecked;
  };
  editing_complete: {
    path: {  };
    query: {  };
    body: CursorRequest;
    answer: TextOffers;
  };
  editing_about: {
    path: {  };
    query: {  };
    body: CursorRequest;
    answer: WordAbout;
  };
  editing_translate: {
    path: {  };
    query: {  };
    body: ValidateRequest;
    answer: TextTranslated;
  };
  editing_test: {
    path: {  };
    query: {  };
    body: TestsRequest;
    answer: TestsRun;
  };
  executions_execute: {
    path: {  };
    query: { strict?: boolean };
    body: ExecuteRequest;
    answer: StartedExecution;
  };
  executions_start_many: {
    path: {  };
    query: { strict?: boolean };
    body: BatchRequest;
    answer: ExecutionBatch;
  };
  executions_prune: {
    path: {  };
    query: {  };
    body: PruneRequest;
    answer: Pruned;
  };
  executions_page: {
    path: {  };
    query: { status?: "queued" | "running" | "paused" | "completed" | "failed" | "cancelled" | null; path?: string | null; parent?: string | null; since?: string | null; until?: string | null; prefix?: string | null; key?: string | null; text?: string | null; label?: string | null; cursor?: string | null; limit?: number };
    body: undefined;
    answer: ExecutionPage;
  };
  executions_standing: {
    path: { execution_id: string };
    query: {  };
    body: undefined;
    answer: Standing;
  };
  executions_state: {
    path: { execution_id: string };
    query: { seq?: number | null };
    body: undefined;
    answer: ExecutionState;
  };
  executions_explanation: {
    path: { execution_id: string };
    query: {  };
    body: undefined;
    answer: Explanation;
  };
  executions_outline: {
    path: { execution_id: string };
    query: {  };
    body: undefined;
    answer: Outline;
  };
  executions_verify: {
    path: { execution_id: string };
    query: {  };
    body: undefined;
    answer: Verified;
  };
  executions_lines: {
    path: { execution_id: string };
    query: { step?: string | null; cursor?: string | null; limit?: number };
    body: undefined;
    answer: LinePage;
  };
  executions_result: {
    path: { execution_id: string };
    query: { wait?: number };
    body: undefined;
    answer: Summary;
  };
  values_render: {
    path: { execution_id: string };
    query: {  };
    body: TemplateRequest;
    answer: TemplateTried;
  };
  values_preview: {
    path: { execution_id: string; checksum: string };
    query: { rows?: number; hint?: string | null };
    body: undefined;
    answer: BodyPreview;
  };
  values_download: {
    path: { execution_id: string; checksum: string };
    query: {  };
    body: undefined;
    answer: null;
  };
  executions_cancel: {
    path: { execution_id: string };
    query: {  };
    body: OrderRequest | null;
    answer: Listed;
  };
  executions_pause: {
    path: { execution_id: string };
    query: {  };
    body: OrderRequest | null;
    answer: Listed;
  };
  executions_resume: {
    path: { execution_id: string };
    query: {  };
    body: OrderRequest | null;
    answer: Listed;
  };
  waiting_signal: {
    path: { execution_id: string };
    query: {  };
    body: SignalRequest;
    answer: Listed;
  };
  waiting_answer: {
    path: { execution_id: string };
    query: {  };
    body: AnswerRequest;
    answer: Listed;
  };
  waiting_waiting: {
    path: {  };
    query: { cursor?: string | null; limit?: number };
    body: undefined;
    answer: WaitingPage;
  };
  restarts_restart: {
    path: { execution_id: string };
    query: {  };
    body: RestartRequest | null;
    answer: StartedExecution;
  };
  restarts_restart_plan: {
    path: { execution_id: string };
    query: {  };
    body: RestartPlanRequest | null;
    answer: RestartPlan;
  };
  restarts_differences: {
    path: { execution_id: string; other: string };
    query: {  };
    body: undefined;
    answer: Differences;
  };
  events_page: {
    path: { execution_id: string };
    query: { after?: number | null; limit?: number; name?: string | null; about?: string | null };
    body: undefined;
    answer: EventPage;
  };
  events_stream: {
    path: { execution_id: string };
    query: { after?: number | null; name?: string | null; iterations?: boolean | null };
    body: undefined;
    answer: null;
  };
  credentials_put: {
    path: { name: string };
    query: {  };
    body: CredentialRequest;
    answer: Credential;
  };
  credentials_page: {
    path: {  };
    query: { cursor?: string | null; limit?: number };
    body: undefined;
    answer: CredentialPage;
  };
  credentials_remove: {
    path: { name: string };
    query: {  };
    body: undefined;
    answer: null;
  };
  access_make: {
    path: {  };
    query: {  };
    body: TokenRequest;
    answer: TokenMade;
  };
  access_page: {
    path: {  };
    query: { cursor?: string | null; limit?: number };
    body: undefined;
    answer: TokenPage;
  };
  access_revoke: {
    path: { token_id: string };
    query: {  };
    body: undefined;
    answer: null;
  };
  sessions_sign_in: {
    path: {  };
    query: {  };
    body: SignInRequest;
    answer: Me;
  };
  sessions_sign_out: {
    path: {  };
    query: {  };
    body: undefined;
    answer: Me;
  };
  sessions_me: {
    path: {  };
    query: {  };
    body: undefined;
    answer: Me;
  };
  runtime_runtime: {
    path: {  };
    query: {  };
    body: undefined;
    answer: Runtime;
  };
  runtime_live: {
    path: {  };
    query: {  };
    body: undefined;
    answer: Health;
  };
  runtime_ready: {
    path: {  };
    query: {  };
    body: undefined;
    answer: Health;
  };
  runtime_metrics: {
    path: {  };
    query: {  };
    body: undefined;
    answer: null;
  };
  document_openapi: {
    path: {  };
    query: {  };
    body: undefined;
    answer: Record<string, unknown>;
  };
  triggers_page: {
    path: {  };
    query: { kind?: string | null; cursor?: string | null; limit?: number };
    body: undefined;
    answer: TriggerPage;
  };
  triggers_detail: {
    path: { path: string };
    query: { count?: number };
    body: undefined;
    answer: TriggerDetail;
  };
  triggers_remove: {
    path: { path: string };
    query: {  };
    body: undefined;
    answer: null;
  };
  triggers_trial: {
    path: { path: string };
    query: {  };
    body: TrialRequest | null;
    answer: Trial;
  };
  triggers_pause: {
    path: { path: string };
    query: {  };
    body: undefined;
    answer: TriggerView;
  };
  triggers_resume: {
    path: { path: string };
    query: {  };
    body: undefined;
    answer: TriggerView;
  };
  triggers_backfill: {
    path: { path: string };
    query: {  };
    body: BackfillRequest;
    answer: Backfill;
  };
  cache_page: {
    path: {  };
    query: { path?: string | null; task?: string | null; key?: string | null; limit?: number };
    body: undefined;
    answer: CachePage;
  };
  cache_clear: {
    path: {  };
    query: {  };
    body: CacheClearRequest;
    answer: CacheCleared;
  };
  audit_page: {
    path: {  };
    query: { since?: string | null; until?: string | null; who?: string | null; what?: string | null; limit?: number };
    body: undefined;
    answer: AuditPage;
  };
  pools_page: {
    path: {  };
    query: {  };
    body: undefined;
    answer: PoolLimits;
  };
  pools_put: {
    path: { name: string };
    query: {  };
    body: PoolRequest;
    answer: PoolLimit;
  };
  pools_remove: {
    path: { name: string };
    query: {  };
    body: undefined;
    answer: null;
  };
  hooks_call: {
    path: { path: string };
    query: { wait?: number | null };
    body: undefined;
    answer: HookAnswer;
  };
}

export const OPERATIONS = {
  catalog_register: ["POST", "/api/catalog"],
  catalog_page: ["GET", "/api/catalog"],
  catalog_entry: ["GET", "/api/catalog/entries/{path}"],
  catalog_remove: ["DELETE", "/api/catalog/entries/{path}"],
  catalog_versions: ["GET", "/api/catalog/versions/{path}"],
  catalog_outline: ["GET", "/api/catalog/outline/{path}"],
  catalog_validate: ["POST", "/api/validate"],
  catalog_schema: ["GET", "/api/schema"],
  editing_check: ["POST", "/api/editing/check"],
  editing_complete: ["POST", "/api/editing/complete"],
  editing_about: ["POST", "/api/editing/about"],
  editing_translate: ["POST", "/api/editing/translate"],
  editing_test: ["POST", "/api/editing/test"],
  executions_execute: ["POST", "/api/executions"],
  executions_start_many: ["POST", "/api/executions/batch"],
  executions_prune: ["POST", "/api/executions/prune"],
  executions_page: ["GET", "/api/executions"],
  executions_standing: ["GET", "/api/executions/{execution_id}"],
  executions_state: ["GET", "/api/executions/{execution_id}/state"],
  executions_explanation: ["GET", "/api/executions/{execution_id}/explanation"],
  executions_outline: ["GET", "/api/executions/{execution_id}/outline"],
  executions_verify: ["GET", "/api/executions/{execution_id}/verify"],
  executions_lines: ["GET", "/api/executions/{execution_id}/logs"],
  executions_result: ["GET", "/api/executions/{execution_id}/result"],
  values_render: ["POST", "/api/executions/{execution_id}/render"],
  values_preview: ["GET", "/api/executions/{execution_id}/bodies/{checksum}"],
  values_download: ["GET", "/api/executions/{execution_id}/bodies/{checksum}/download"],
  executions_cancel: ["POST", "/api/executions/{execution_id}/cancel"],
  executions_pause: ["POST", "/api/executions/{execution_id}/pause"],
  executions_resume: ["POST", "/api/executions/{execution_id}/resume"],
  waiting_signal: ["POST", "/api/executions/{execution_id}/signal"],
  waiting_answer: ["POST", "/api/executions/{execution_id}/answer"],
  waiting_waiting: ["GET", "/api/waiting"],
  restarts_restart: ["POST", "/api/executions/{execution_id}/restart"],
  restarts_restart_plan: ["POST", "/api/executions/{execution_id}/restart/plan"],
  restarts_differences: ["GET", "/api/executions/{execution_id}/differences/{other}"],
  events_page: ["GET", "/api/executions/{execution_id}/events"],
  events_stream: ["GET", "/api/executions/{execution_id}/stream"],
  credentials_put: ["PUT", "/api/credentials/{name}"],
  credentials_page: ["GET", "/api/credentials"],
  credentials_remove: ["DELETE", "/api/credentials/{name}"],
  access_make: ["POST", "/api/tokens"],
  access_page: ["GET", "/api/tokens"],
  access_revoke: ["DELETE", "/api/tokens/{token_id}"],
  sessions_sign_in: ["POST", "/api/sign-in"],
  sessions_sign_out: ["POST", "/api/sign-out"],
  sessions_me: ["GET", "/api/me"],
  runtime_runtime: ["GET", "/api/runtime"],
  runtime_live: ["GET", "/healthz"],
  runtime_ready: ["GET", "/readyz"],
  runtime_metrics: ["GET", "/metrics"],
  document_openapi: ["GET", "/openapi.json"],
  triggers_page: ["GET", "/api/triggers"],
  triggers_detail: ["GET", "/api/triggers/entries/{path}"],
  triggers_remove: ["DELETE", "/api/triggers/entries/{path}"],
  triggers_trial: ["POST", "/api/triggers/trial/{path}"],
  triggers_pause: ["POST", "/api/triggers/pause/{path}"],
  triggers_resume: ["POST", "/api/triggers/resume/{path}"],
  triggers_backfill: ["POST", "/api/triggers/backfill/{path}"],
  cache_page: ["GET", "/api/cache"],
  cache_clear: ["POST", "/api/cache/clear"],
  audit_page: ["GET", "/api/audit"],
  pools_page: ["GET", "/api/pools"],
  pools_put: ["PUT", "/api/pools/{name}"],
  pools_remove: ["DELETE", "/api/pools/{name}"],
  hooks_call: ["POST", "/hooks/{path}"],
} as const;
