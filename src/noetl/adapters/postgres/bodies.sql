-- The statements of the object store, by name.

-- name: has_object
select exists (
    select from noetl.body where execution_id = $1 and checksum = $2 and number = 0
)

-- name: keep_piece
insert into noetl.body (execution_id, checksum, number, piece) values ($1, $2, $3, $4)
on conflict do nothing

-- name: read_piece
select piece from noetl.body where execution_id = $1 and checksum = $2 and number = $3

-- name: objects_of
select distinct checksum from noetl.body where execution_id = $1

-- name: remove_objects
with gone as (
    delete from noetl.body
    using unnest($1::text[], $2::text[]) as asked (execution_id, checksum)
    where body.execution_id = asked.execution_id and body.checksum = asked.checksum
    returning body.execution_id, body.checksum
)
select count(distinct (execution_id, checksum)) from gone
