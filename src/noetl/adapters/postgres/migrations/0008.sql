-- Removed executions (KEEP-1): of those that are `remaining` rows or bodies must still go. They are known for
-- as long as an idempotency key may ask for one.

create table noetl.removed_execution (
    execution_id text collate "C" primary key,
    at bigint not null,
    remaining boolean not null
);

create index removed_remaining on noetl.removed_execution (at) where remaining;
create index removed_age on noetl.removed_execution (at);

-- A version that was removed from the catalog keeps its number: an id never means another text.

alter table noetl.catalog add column removed_at bigint;
