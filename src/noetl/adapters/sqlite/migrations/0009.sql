-- Removed executions (KEEP-1): of those that are `remaining` rows or bodies must still go. They are known for
-- as long as an idempotency key may ask for one.

create table removed_execution (
    execution_id text primary key,
    at integer not null,
    remaining integer not null
) without rowid;

create index removed_remaining on removed_execution (at) where remaining;
create index removed_age on removed_execution (at);

-- A version that was removed from the catalog keeps its number: an id never means another text.

alter table catalog add column removed_at integer;
