-- The statements of the result store, by name.

-- name: has_body
select exists (
    select from noetl.body where execution_id = %s and checksum = %s and number = 0
)

-- name: keep_piece
insert into noetl.body (execution_id, checksum, number, piece) values (%s, %s, %s, %s)
on conflict do nothing

-- name: read_piece
select piece from noetl.body where execution_id = %s and checksum = %s and number = %s

-- name: bodies_of
select distinct checksum from noetl.body where execution_id = %s

-- name: remove_bodies
delete from noetl.body where execution_id = %s and checksum = any (%s)
