-- Pools of workers with a limit (LIMIT-1).

create table noetl.pool (
    name text collate "C" primary key,
    at_once integer not null,
    set_at bigint not null
);
