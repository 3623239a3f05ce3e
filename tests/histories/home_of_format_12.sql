PRAGMA user_version = 12;
BEGIN TRANSACTION;
CREATE TABLE api_token (
    token_id text primary key,
    name text not null,
    role text not null,
    digest text not null unique,
    created_at integer not null,
    expires_at integer,
    revoked_at integer
) without rowid;
CREATE TABLE audit (
    number integer primary key autoincrement,
    at integer not null,
    who text not null,
    role text not null,
    what text not null,
    about text not null,
    result text not null,
    detail text not null
);
CREATE TABLE body_use (
    used_by text not null,
    source text not null,
    since integer not null,
    primary key (used_by, source)
) without rowid;
CREATE TABLE cache_entry (
    entry_id text primary key,
    path text not null,
    task text not null,
    key text not null,
    fingerprint text not null,
    execution_id text not null,
    kept_at integer not null,
    expires_at integer not null,
    size integer not null,
    outcome blob not null
);
CREATE TABLE catalog (
    path text not null,
    version integer not null,
    digest text not null,
    registered_at integer not null,
    name text not null,
    description text,
    labels text not null,
    original_digest text, version_label text, removed_at integer,
    primary key (path, version)
) without rowid;
CREATE TABLE credential (
    name text primary key,
    kind text not null,
    key_id text not null,
    sealed blob not null,
    updated_at integer not null
) without rowid;
CREATE TABLE decision (
    execution_id text not null,
    first_seq integer not null,
    last_seq integer not null,
    at integer not null,
    events text not null
);
INSERT INTO "decision" VALUES('01m7kqe7xkk0e70tnk',1,7,1794884706227,'[{"name":"playbook.execution.requested","path":"tests/kept","digest":"ae685f8def1a7bfdf9abc07d64eeb8c8d9bd6b1fb92f7caf2dfe5d4e86d95ffe","folder":"/kept1","sender":"root","rules":4},{"name":"playbook.request.evaluated","workload":{"rows":[1,2]}},{"name":"workflow.started","step":"start"},{"name":"token.created","token_id":"3.0","step":"start"},{"name":"step.scheduled","step":"start","step_run_id":"4.0","tokens":["3.0"]},{"name":"loop.started","step":"start","step_run_id":"4.0","total":2,"items":[1,2],"mode":"sequential"},{"name":"token.enqueued","step":"start","step_run_id":"4.0"}]');
INSERT INTO "decision" VALUES('01m7kqe7xkk0e70tnk',8,31,1794884707270,'[{"name":"token.claimed","step":"start","step_run_id":"4.0","worker":"local-27990","epoch":1},{"name":"step.started","step":"start","step_run_id":"4.0"},{"name":"loop.iteration.started","step":"start","step_run_id":"4.0","index":0,"iteration_id":"4.1"},{"name":"task.started","step":"start","step_run_id":"4.0","task_run_id":"4.1.1","task":"add","kind":"transform"},{"name":"task.done","step":"start","step_run_id":"4.0","task_run_id":"4.1.1","task":"add","outcome":{"status":"ok","result":1,"error":null,"transform":{"outputs":1},"meta":{"attempt":1,"started_at":1794884706723,"duration_ms":546,"task_run_id":"4.1.1","trace_id":"01m7kqe7xkk0e70tnk","worker":"local-27990"}},"rule":0,"delay":0.0,"set_ctx":{"total":1}},{"name":"loop.iteration.done","step":"start","step_run_id":"4.0","index":0,"iteration_id":"4.1","result":1},{"name":"loop.iteration.started","step":"start","step_run_id":"4.0","index":1,"iteration_id":"4.2"},{"name":"task.started","step":"start","step_run_id":"4.0","task_run_id":"4.2.1","task":"add","kind":"transform"},{"name":"task.done","step":"start","step_run_id":"4.0","task_run_id":"4.2.1","task":"add","outcome":{"status":"ok","result":2,"error":null,"transform":{"outputs":1},"meta":{"attempt":1,"started_at":1794884707269,"duration_ms":0,"task_run_id":"4.2.1","trace_id":"01m7kqe7xkk0e70tnk","worker":"local-27990"}},"rule":0,"delay":0.0,"set_ctx":{"total":2}},{"name":"loop.iteration.done","step":"start","step_run_id":"4.0","index":1,"iteration_id":"4.2","result":2},{"name":"ctx.patched","patch":{"total":3},"step":"start","step_run_id":"4.0"},{"name":"loop.done","step":"start","step_run_id":"4.0","total":2,"done":2,"results":[1,2]},{"name":"next.evaluated","step":"start","step_run_id":"4.0","on":"loop.done","arcs":[0]},{"name":"next.fired","step":"start","step_run_id":"4.0","arc":0,"to":"end","token_id":"19.0"},{"name":"token.created","token_id":"19.0","step":"end","args":{"total":3},"parent_step_run_id":"4.0","source":"start"},{"name":"step.scheduled","step":"end","step_run_id":"22.0","tokens":["19.0"]},{"name":"token.enqueued","step":"end","step_run_id":"22.0"},{"name":"token.claimed","step":"end","step_run_id":"22.0","worker":"local-27990","epoch":1},{"name":"step.started","step":"end","step_run_id":"22.0"},{"name":"task.started","step":"end","step_run_id":"22.0","task_run_id":"22.1","task":"rest","kind":"noop"},{"name":"task.done","step":"end","step_run_id":"22.0","task_run_id":"22.1","task":"rest","outcome":{"status":"ok","result":null,"error":null,"meta":{"attempt":1,"started_at":1794884707270,"duration_ms":0,"task_run_id":"22.1","trace_id":"01m7kqe7xkk0e70tnk","worker":"local-27990"}}},{"name":"step.done","step":"end","step_run_id":"22.0"},{"name":"workflow.finished","status":"completed"},{"name":"playbook.processed","status":"completed"}]');
CREATE TABLE event_name (
    name text primary key,
    source text not null,
    entity text not null,
    status text not null,
    id_field text not null
) without rowid;
INSERT INTO "event_name" VALUES('ctx.patched','server','task','success','task_run_id');
INSERT INTO "event_name" VALUES('execution.admitted','server','workflow','in_progress','');
INSERT INTO "event_name" VALUES('execution.cancelled','server','workflow','in_progress','');
INSERT INTO "event_name" VALUES('execution.paused','server','workflow','paused','');
INSERT INTO "event_name" VALUES('execution.queued','server','workflow','paused','');
INSERT INTO "event_name" VALUES('execution.restored','server','workflow','in_progress','');
INSERT INTO "event_name" VALUES('execution.resumed','server','workflow','in_progress','');
INSERT INTO "event_name" VALUES('lease.expired','server','step','error','step_run_id');
INSERT INTO "event_name" VALUES('loop.done','worker','loop','success','step_run_id');
INSERT INTO "event_name" VALUES('loop.iteration.done','worker','loop','success','iteration_id');
INSERT INTO "event_name" VALUES('loop.iteration.failed','worker','loop','error','iteration_id');
INSERT INTO "event_name" VALUES('loop.iteration.started','worker','loop','in_progress','iteration_id');
INSERT INTO "event_name" VALUES('loop.started','server','loop','in_progress','step_run_id');
INSERT INTO "event_name" VALUES('next.evaluated','server','next','success','step_run_id');
INSERT INTO "event_name" VALUES('next.fired','server','next','success','token_id');
INSERT INTO "event_name" VALUES('playbook.execution.requested','server','playbook','in_progress','');
INSERT INTO "event_name" VALUES('playbook.processed','server','playbook','success','');
INSERT INTO "event_name" VALUES('playbook.request.evaluated','server','playbook','in_progress','');
INSERT INTO "event_name" VALUES('policy.admit.evaluated','server','step','success','token_id');
INSERT INTO "event_name" VALUES('signal.received','server','workflow','success','');
INSERT INTO "event_name" VALUES('step.done','worker','step','success','step_run_id');
INSERT INTO "event_name" VALUES('step.failed','worker','step','error','step_run_id');
INSERT INTO "event_name" VALUES('step.parked','server','step','paused','step_run_id');
INSERT INTO "event_name" VALUES('step.restored','server','step','in_progress','step_run_id');
INSERT INTO "event_name" VALUES('step.scheduled','server','step','in_progress','step_run_id');
INSERT INTO "event_name" VALUES('step.started','worker','step','in_progress','step_run_id');
INSERT INTO "event_name" VALUES('task.cached','worker','task','success','task_run_id');
INSERT INTO "event_name" VALUES('task.done','worker','task','success','task_run_id');
INSERT INTO "event_name" VALUES('task.started','worker','task','in_progress','task_run_id');
INSERT INTO "event_name" VALUES('task.suspended','worker','task','paused','task_run_id');
INSERT INTO "event_name" VALUES('token.absorbed','server','step','skipped','token_id');
INSERT INTO "event_name" VALUES('token.claimed','server','step','in_progress','step_run_id');
INSERT INTO "event_name" VALUES('token.created','server','step','in_progress','token_id');
INSERT INTO "event_name" VALUES('token.dropped','server','step','skipped','token_id');
INSERT INTO "event_name" VALUES('token.enqueued','server','step','in_progress','step_run_id');
INSERT INTO "event_name" VALUES('token.parked','server','step','paused','token_id');
INSERT INTO "event_name" VALUES('wait.done','server','task','success','task_run_id');
INSERT INTO "event_name" VALUES('wait.started','worker','task','paused','task_run_id');
INSERT INTO "event_name" VALUES('wait.withdrawn','server','task','skipped','task_run_id');
INSERT INTO "event_name" VALUES('workflow.finished','server','workflow','success','');
INSERT INTO "event_name" VALUES('workflow.started','server','workflow','in_progress','');
CREATE TABLE execution (
    number integer primary key,
    execution_id text not null unique,
    path text not null,
    digest text not null,
    status text not null,
    started_at integer not null,
    updated_at integer not null,
    version text,
    finished_at integer,
    parent_execution_id text,
    owner text,
    error text,
    seq integer not null
, limit_key text, priority integer, queued_at integer, wake_at integer, origin_execution_id text, origin_seq integer);
INSERT INTO "execution" VALUES(1,'01m7kqe7xkk0e70tnk','tests/kept','ae685f8def1a7bfdf9abc07d64eeb8c8d9bd6b1fb92f7caf2dfe5d4e86d95ffe','completed',1794884706227,1794884707270,NULL,1794884707270,NULL,NULL,NULL,31,NULL,NULL,NULL,NULL,NULL,NULL);
CREATE TABLE execution_key (
    key text primary key,
    fingerprint text not null,
    execution_id text not null,
    claimed_at integer not null
) without rowid;
CREATE TABLE limit_begun (
    limit_group text not null,
    limit_key text not null,
    at integer not null,
    until integer not null
);
CREATE TABLE limit_claim (
    execution_id text not null,
    holder text not null,
    limit_group text not null,
    limit_key text not null,
    at_once integer,
    total integer,
    count integer,
    seconds real not null,
    priority integer not null,
    turn integer not null,
    asked_at integer not null,
    granted_at integer,
    process text not null,
    primary key (execution_id, holder)
) without rowid;
CREATE TABLE note (
    note_id integer primary key autoincrement,
    execution_id text not null,
    kind text not null,
    fields text not null
);
CREATE TABLE playbook (
    digest text primary key,
    path text not null,
    text text not null,
    folder text
);
INSERT INTO "playbook" VALUES('ae685f8def1a7bfdf9abc07d64eeb8c8d9bd6b1fb92f7caf2dfe5d4e86d95ffe','tests/kept','apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: kept, path: tests/kept }
workload: { rows: [1, 2] }
workflow:
  - step: start
    loop: { in: "{{ workload.rows }}", iterator: row, spec: { policy: { reduce: { total: sum } } } }
    tool:
      - add: { kind: transform, value: "{{ iter.row }}", spec: { policy: { rules: [ { else: { then: { do: continue, set_ctx: { total: "{{ outcome.result }}" } } } } ] } } }
    next: { arcs: [ { step: end, args: { total: "{{ ctx.total }}" } } ] }
  - step: end
    tool: [ { rest: { kind: noop } } ]
','/kept1');
CREATE TABLE pool (
    name text primary key,
    at_once integer not null,
    set_at integer not null
) without rowid;
CREATE TABLE printed (
    execution_id text not null,
    step text not null,
    task_run_id text not null,
    attempt integer not null,
    at integer not null,
    stream text not null,
    text text not null
);
CREATE TABLE process (
    token text primary key,
    pid integer not null,
    ticks integer,
    boot text
);
INSERT INTO "process" VALUES('c706b88d801df65e',27990,460893,'78bb8960-88b0-48c4-b53b-51e3c615c588');
CREATE TABLE removed_execution (
    execution_id text primary key,
    at integer not null,
    remaining integer not null
) without rowid;
CREATE TABLE server (
    name text primary key,
    address text not null,
    version text not null,
    started_at integer not null,
    seen_at integer not null
) without rowid;
CREATE TABLE snapshot (
    execution_id text primary key,
    seq integer not null,
    body blob not null
);
CREATE TABLE term (last integer not null);
INSERT INTO "term" VALUES(0);
CREATE TABLE trigger_state (
    path text primary key,
    kind text not null,
    version integer not null,
    paused integer not null,
    since integer not null,
    planned_at integer,
    due_at integer,
    last_at integer,
    last_execution_id text,
    skipped_at integer,
    skipped_why text,
    waits_for text,
    taken_until integer not null default 0
) without rowid;
CREATE TABLE worker (
    name text primary key,
    pool text not null,
    slots integer not null,
    version text not null,
    host text not null,
    pid integer not null,
    started_at integer not null,
    seen_at integer not null,
    busy integer not null,
    server text
) without rowid;
CREATE INDEX execution_owner on execution (owner) where owner is not null;
CREATE INDEX decision_order on decision (execution_id, first_seq);
CREATE INDEX printed_order on printed (execution_id);
CREATE INDEX execution_status on execution (status);
CREATE INDEX execution_path on execution (path);
CREATE INDEX execution_started on execution (started_at);
CREATE INDEX execution_finished on execution (finished_at) where finished_at is not null;
CREATE INDEX execution_parent on execution (parent_execution_id)
where parent_execution_id is not null;
CREATE INDEX execution_free on execution (number) where finished_at is null and owner is null;
CREATE INDEX execution_key_age on execution_key (claimed_at);
CREATE INDEX execution_wake on execution (wake_at) where wake_at is not null;
CREATE INDEX catalog_label on catalog (path, version_label)
where version_label is not null;
CREATE VIEW event as
select
    single.execution_id || '.' || single.seq as event_id,
    single.seq as seq,
    single.execution_id as execution_id,
    strftime('%Y-%m-%dT%H:%M:%S', single.at / 1000, 'unixepoch')
        || printf('.%03dZ', single.at % 1000) as timestamp,
    case
        when single.name = 'loop.started'
            and json_extract(single.value, '$.parent_id') is not null then 'worker'
        when single.name in ('step.done', 'step.failed', 'loop.done')
            then coalesce(json_extract(single.value, '$.source'), about.source)
        else coalesce(about.source, 'server')
    end as source,
    single.name as name,
    coalesce(about.entity, 'workflow') as entity,
    coalesce(
        iif(about.id_field = '', null, json_extract(single.value, '$.' || about.id_field)),
        single.execution_id
    ) as entity_id,
    case
        when json_extract(single.value, '$.error') is not null then 'error'
        when single.name = 'task.done' and (
            json_extract(single.value, '$.outcome.status') = 'error'
            or json_extract(single.value, '$.do') = 'fail'
        ) then 'error'
        when single.name in ('workflow.finished', 'playbook.processed')
            and json_extract(single.value, '$.status') in ('failed', 'cancelled') then 'error'
        when single.name = 'policy.admit.evaluated'
            and not json_extract(single.value, '$.allow') then 'skipped'
        when single.name = 'lease.expired' and (
            json_extract(single.value, '$.returned') or json_extract(single.value, '$.uncounted')
        ) then 'in_progress'
        else coalesce(about.status, 'in_progress')
    end as status,
    json_extract(single.value, '$.step') as step,
    json_extract(single.value, '$.step_run_id') as step_run_id,
    json_extract(single.value, '$.task_run_id') as task_run_id,
    coalesce(
        (
            select json_extract(opening.events, '$[0].trace_id') from decision as opening
            where opening.execution_id = single.execution_id and opening.first_seq = 1
        ),
        single.execution_id
    ) as trace_id,
    case
        when json_extract(single.value, '$.parent_id') is not null
            then json_extract(single.value, '$.parent_id')
        when single.above like '%.%' then single.above
        when single.above is not null or json_extract(single.value, '$.iteration_id') is not null
            then json_extract(single.value, '$.step_run_id')
        else json_extract(single.value, '$.parent_step_run_id')
    end as parent_id,
    json_remove(
        case single.name
            when 'task.started' then json_insert(single.value, '$.attempt', 1)
            when 'task.done'
                then json_insert(single.value, '$.attempt', 1, '$.do', 'continue')
            else single.value
        end,
        '$.name', '$.step', '$.step_run_id', '$.task_run_id', '$.trace_id', '$.parent_id',
        iif(single.name in ('step.done', 'step.failed', 'loop.done'), '$.source', '$.name')
    ) as data
from (
    select
        decision.execution_id as execution_id,
        decision.first_seq + element.key as seq,
        decision.at as at,
        element.value as value,
        json_extract(element.value, '$.name') as name,
        -- EVT-0: `4.1` is a task of run `4.0`, `4.1.2` one of iteration `4.1`.
        rtrim(rtrim(json_extract(element.value, '$.task_run_id'), '0123456789'), '.') as above
    from decision, json_each(decision.events) as element
) as single
left join event_name as about on about.name = single.name;
CREATE INDEX limit_waiting on limit_claim (
    limit_group, limit_key, priority desc, turn, asked_at, execution_id
) where granted_at is null;
CREATE INDEX limit_turn on limit_claim (limit_group, turn) where granted_at is null;
CREATE INDEX limit_held on limit_claim (limit_group, limit_key) where granted_at is not null;
CREATE INDEX limit_granted on limit_claim (granted_at) where granted_at is not null;
CREATE INDEX limit_counted on limit_begun (limit_group, limit_key, at);
CREATE INDEX limit_forgotten on limit_begun (until);
CREATE VIEW execution_row as
select
    number, execution_id, path, digest, status, started_at,
    coalesce(
        (
            select at from decision
            where decision.execution_id = execution.execution_id and first_seq > execution.seq
            order by first_seq desc limit 1
        ),
        updated_at
    ) as updated_at,
    version, finished_at, parent_execution_id, owner, error, limit_key, priority, queued_at,
    wake_at, origin_execution_id, origin_seq,
    coalesce(
        (
            select last_seq from decision
            where decision.execution_id = execution.execution_id and first_seq > execution.seq
            order by first_seq desc limit 1
        ),
        seq
    ) as seq
from execution;
CREATE INDEX trigger_due on trigger_state (due_at) where due_at is not null and not paused;
CREATE INDEX trigger_kind on trigger_state (kind, path);
CREATE INDEX execution_origin on execution (origin_execution_id)
where origin_execution_id is not null;
CREATE INDEX removed_remaining on removed_execution (at) where remaining;
CREATE INDEX removed_age on removed_execution (at);
CREATE INDEX cache_expiry on cache_entry (expires_at);
CREATE INDEX cache_path on cache_entry (path, kept_at);
CREATE INDEX body_source on body_use (source);
CREATE INDEX audit_at on audit (at);
DELETE FROM "sqlite_sequence";
COMMIT;
