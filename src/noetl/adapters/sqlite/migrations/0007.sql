-- How each trigger stands (START-1). The index holds only what a server may be given: however many
-- triggers wait for their time, looking for those that are due reads none of them.

create table trigger_state (
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

create index trigger_due on trigger_state (due_at) where due_at is not null and not paused;
create index trigger_kind on trigger_state (kind, path);
