-- Places for what comes next; nothing fills them yet.
--
-- limit_key, priority, queued_at: an execution whose status is `queued` waits for a place under a
-- limit; the index has them in their order, the next one first.
-- wake_at: when something that an execution waits for is due, so that any server finds it without
-- loading those that wait.
-- origin_execution_id, origin_seq: the point of another execution from which it was restarted.

alter table noetl.execution
    add column limit_key text collate "C",
    add column priority integer,
    add column queued_at bigint,
    add column wake_at bigint,
    add column origin_execution_id text collate "C",
    add column origin_seq bigint;

create index execution_queue on noetl.execution (limit_key, priority desc, queued_at, number)
where status = 'queued';
create index execution_wake on noetl.execution (wake_at) where wake_at is not null;
