-- The home's tables. One row per decision: a step of a chain costs one commit.

create table execution (
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
);

-- Small: only live executions have an owner.
create index execution_owner on execution (owner) where owner is not null;

create table decision (
    execution_id text not null,
    first_seq integer not null,
    last_seq integer not null,
    at integer not null,
    events text not null
);

create index decision_order on decision (execution_id, first_seq);

create table snapshot (
    execution_id text primary key,
    seq integer not null,
    body blob not null
);

create table playbook (
    digest text primary key,
    path text not null,
    text text not null,
    folder text
);

create table note (
    note_id integer primary key autoincrement,
    execution_id text not null,
    kind text not null,
    fields text not null
);

create table process (
    token text primary key,
    pid integer not null,
    ticks integer,
    boot text
);

create table printed (
    execution_id text not null,
    step text not null,
    task_run_id text not null,
    attempt integer not null,
    at integer not null,
    stream text not null,
    text text not null
);

create index printed_order on printed (execution_id);

-- What follows from an event's name (EVT-1); filled from the table of names.
create table event_name (
    name text primary key,
    source text not null,
    entity text not null,
    status text not null,
    id_field text not null
) without rowid;

create view event as
select
    single.execution_id || '.' || single.seq as event_id,
    single.seq as seq,
    single.execution_id as execution_id,
    strftime('%Y-%m-%dT%H:%M:%S', single.at / 1000, 'unixepoch')
        || printf('.%03dZ', single.at % 1000) as timestamp,
    coalesce(about.source, 'server') as source,
    single.name as name,
    coalesce(about.entity, 'workflow') as entity,
    coalesce(
        iif(about.id_field = '', null, json_extract(single.value, '$.' || about.id_field)),
        single.execution_id
    ) as entity_id,
    case
        when single.name = 'task.done'
            and json_extract(single.value, '$.outcome.status') = 'error' then 'error'
        when single.name in ('workflow.finished', 'playbook.processed')
            and json_extract(single.value, '$.status') in ('failed', 'cancelled') then 'error'
        when single.name = 'policy.admit.evaluated'
            and not json_extract(single.value, '$.allow') then 'skipped'
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
    json_extract(single.value, '$.parent_id') as parent_id,
    json_remove(
        single.value, '$.name', '$.step', '$.step_run_id', '$.task_run_id', '$.trace_id', '$.parent_id'
    ) as data
from (
    select
        decision.execution_id as execution_id,
        decision.first_seq + element.key as seq,
        decision.at as at,
        element.value as value,
        json_extract(element.value, '$.name') as name
    from decision, json_each(decision.events) as element
) as single
left join event_name as about on about.name = single.name;
