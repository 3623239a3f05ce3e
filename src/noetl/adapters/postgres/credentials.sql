-- The statements of registered credentials, by name.

-- name: keep
insert into noetl.credential (name, kind, key_id, sealed, updated_at) values (%s, %s, %s, %s, %s)
on conflict (name) do update set
    kind = excluded.kind, key_id = excluded.key_id, sealed = excluded.sealed,
    updated_at = excluded.updated_at

-- name: find
select name, kind, key_id, sealed, updated_at from noetl.credential where name = %s

-- name: all
select name, kind, key_id, sealed, updated_at from noetl.credential order by name

-- name: remove
delete from noetl.credential where name = %s

-- name: nobody_else_writes
lock table noetl.credential in share row exclusive mode
