-- Credentials have their table from the start. Homes of earlier programs made it with the first one.

create table if not exists credential (
    name text primary key,
    kind text not null,
    key_id text not null,
    sealed blob not null,
    updated_at integer not null
) without rowid;
