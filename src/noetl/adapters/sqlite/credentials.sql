-- The table is made when the first credential is registered: a home without one stays as it was,
-- and a program that knows no credentials still reads the home.

-- name: create
create table if not exists credential (
    name text primary key,
    kind text not null,
    key_id text not null,
    sealed blob not null,
    updated_at integer not null
) without rowid

-- name: exists
select 1 from sqlite_schema where type = 'table' and name = 'credential'

-- name: keep
insert into credential (name, kind, key_id, sealed, updated_at) values (?, ?, ?, ?, ?)
on conflict (name) do update set
    kind = excluded.kind, key_id = excluded.key_id, sealed = excluded.sealed,
    updated_at = excluded.updated_at

-- name: find
select name, kind, key_id, sealed, updated_at from credential where name = ?

-- name: all
select name, kind, key_id, sealed, updated_at from credential order by name

-- name: remove
delete from credential where name = ?
