-- The log's tables. One row per decision: a step of a chain costs one commit. The events stand in
-- plain text, for a binary form would be parsed with every append and read by nobody (decision 0015).

create table noetl.execution (
    number bigint generated always as identity primary key,
    execution_id text collate "C" not null unique,
    path text not null,
    digest text collate "C" not null,
    status text not null,
    started_at bigint not null,
    updated_at bigint not null,
    version text,
    finished_at bigint,
    parent_execution_id text collate "C",
    owner text collate "C",
    error text,
    seq bigint not null
) with (fillfactor = 50);  -- room to advance a row in its own page, without touching an index

-- Small: only live executions have an owner.
create index execution_owner on noetl.execution (owner) where owner is not null;

-- Filtered pages, newest first, whatever the length of the history.
create index execution_status on noetl.execution (status, number);
create index execution_path on noetl.execution (path, number);

create table noetl.decision (
    execution_id text collate "C" not null,
    first_seq bigint not null,
    last_seq bigint not null,
    at bigint not null,
    events text not null
);

create index decision_order on noetl.decision (execution_id, first_seq);

create table noetl.snapshot (
    execution_id text collate "C" primary key,
    seq bigint not null,
    body bytea not null
);

create table noetl.playbook (
    digest text collate "C" primary key,
    path text not null,
    text text not null,
    folder text
);

-- `mark` is drawn by whoever leaves the note: saying it twice, for want of an answer, leaves one.
create table noetl.note (
    note_id bigint generated always as identity primary key,
    execution_id text collate "C" not null,
    kind text not null,
    fields text not null,
    mark text collate "C" not null unique
);

create index note_execution on noetl.note (execution_id);

-- A process lives while its lease does, by the clock of the database. `batch` and `xid` are those
-- of its last commit; `term` rises with each of its connections and shuts out the ones before.
create table noetl.process (
    token text collate "C" primary key,
    pid integer not null,
    host text not null,
    expires_at timestamptz not null,
    term bigint not null default 1,
    batch bigint not null default 0,
    xid xid8
) with (fillfactor = 10);

create table noetl.printed (
    number bigint generated always as identity,
    execution_id text collate "C" not null,
    step text not null,
    task_run_id text not null,
    attempt integer not null,
    at bigint not null,
    stream text not null,
    text text not null
);

create index printed_order on noetl.printed (execution_id, number);

-- Bodies of results, in pieces: a row is read whole.
create table noetl.body (
    execution_id text collate "C" not null,
    checksum text collate "C" not null,
    number integer not null,
    piece bytea not null,
    primary key (execution_id, checksum, number)
);

alter table noetl.body alter column piece set storage external;

-- What follows from an event's name (EVT-1); filled from the table of names.
create table noetl.event_name (
    name text primary key,
    source text not null,
    entity text not null,
    status text not null,
    id_field text not null
);

-- The character U+0000 can stand in a JSON text, but PostgreSQL cannot read it there.
create function noetl.readable(events text) returns json
language sql immutable strict parallel safe
return case
    when position('\u0000' in events) = 0 then events
    else regexp_replace(events, '(?<!\\)((?:\\\\)*)\\u0000', '\1\\ufffd', 'g')
end::json;

create view noetl.event as
select
    single.execution_id || '.' || single.seq as event_id,
    single.seq as seq,
    single.execution_id as execution_id,
    to_char(
        timestamp 'epoch' + single.at * interval '1 millisecond', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'
    ) as timestamp,
    coalesce(about.source, 'server') as source,
    single.name as name,
    coalesce(about.entity, 'workflow') as entity,
    coalesce(single.value ->> nullif(about.id_field, ''), single.execution_id) as entity_id,
    case
        when single.name = 'task.done'
            and single.value #>> '{outcome,status}' = 'error' then 'error'
        when single.name in ('workflow.finished', 'playbook.processed')
            and single.value ->> 'status' in ('failed', 'cancelled') then 'error'
        when single.name = 'policy.admit.evaluated'
            and single.value ->> 'allow' = 'false' then 'skipped'
        else coalesce(about.status, 'in_progress')
    end as status,
    single.value ->> 'step' as step,
    single.value ->> 'step_run_id' as step_run_id,
    single.value ->> 'task_run_id' as task_run_id,
    coalesce(
        (
            select noetl.readable(opening.events) -> 0 ->> 'trace_id'
            from noetl.decision as opening
            where opening.execution_id = single.execution_id and opening.first_seq = 1
        ),
        single.execution_id
    ) as trace_id,
    single.value ->> 'parent_id' as parent_id,
    (
        select coalesce(json_object_agg(field.key, field.value), '{}')
        from json_each(single.value) as field
        where field.key not in (
            'name', 'step', 'step_run_id', 'task_run_id', 'trace_id', 'parent_id'
        )
    ) as data
from (
    select
        decision.execution_id as execution_id,
        decision.first_seq + element.place - 1 as seq,
        decision.at as at,
        element.value as value,
        element.value ->> 'name' as name
    from noetl.decision
    cross join json_array_elements(noetl.readable(decision.events))
        with ordinality as element (value, place)
) as single
left join noetl.event_name as about on about.name = single.name;
