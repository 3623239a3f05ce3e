-- How each trigger stands (START-1). The index holds only what a server may be given: however many
-- triggers wait for their time, looking for those that are due reads none of them.

create table noetl.trigger_state (
    path text collate "C" primary key,
    kind text collate "C" not null,
    version integer not null,
    paused boolean not null,
    since bigint not null,
    planned_at bigint,
    due_at bigint,
    last_at bigint,
    last_execution_id text,
    skipped_at bigint,
    skipped_why text,
    waits_for text,
    taken_until bigint not null default 0
);

create index trigger_due on noetl.trigger_state (due_at) where due_at is not null and not paused;
create index trigger_kind on noetl.trigger_state (kind, path);
