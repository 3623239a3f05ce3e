-- Pools of workers with a limit (LIMIT-1).

create table pool (
    name text primary key,
    at_once integer not null,
    set_at integer not null
) without rowid;
