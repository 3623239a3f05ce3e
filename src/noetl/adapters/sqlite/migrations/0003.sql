-- Places for what comes next; nothing fills them yet.
--
-- limit_key, priority, queued_at: an execution whose status is `queued` waits for a place under a
-- limit; the index has them in their order, the next one first.
-- wake_at: when something that an execution waits for is due, so that any server finds it without
-- loading those that wait.
-- origin_execution_id, origin_seq: the point of another execution from which it was restarted.

alter table execution add column limit_key text;
alter table execution add column priority integer;
alter table execution add column queued_at integer;
alter table execution add column wake_at integer;
alter table execution add column origin_execution_id text;
alter table execution add column origin_seq integer;

create index execution_queue on execution (limit_key, priority desc, queued_at)
where status = 'queued';
create index execution_wake on execution (wake_at) where wake_at is not null;

-- Credentials have their table from the start. Homes of earlier programs made it with the first one.

create table if not exists credential (
    name text primary key,
    kind text not null,
    key_id text not null,
    sealed blob not null,
    updated_at integer not null
) without rowid;
