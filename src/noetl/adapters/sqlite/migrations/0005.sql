-- Claims on limits (LIMIT): what holds a place, and what waits for one. `turn` lets the keys of a
-- group take turns. What began under a limit on starts is remembered for as long as it counts.

create table limit_claim (
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

create index limit_waiting on limit_claim (
    limit_group, limit_key, priority desc, turn, asked_at, execution_id
) where granted_at is null;
create index limit_turn on limit_claim (limit_group, turn) where granted_at is null;
create index limit_held on limit_claim (limit_group, limit_key) where granted_at is not null;
create index limit_granted on limit_claim (granted_at) where granted_at is not null;

create table limit_begun (
    limit_group text not null,
    limit_key text not null,
    at integer not null,
    until integer not null
);

create index limit_counted on limit_begun (limit_group, limit_key, at);
create index limit_forgotten on limit_begun (until);

-- They stood on the execution's row for this, and nothing ever filled them.

drop index execution_queue;
