-- Every statement by its name. Rows of a batch come as one array for each column; those of the
-- hot path as one text for each, since splitting it costs less than arrays cost the driver.

-- name: found
-- Our own table, and anything at all, as one statement sees both. Not by `to_regclass`, which
-- answers from what the connection remembers of the catalog.
select coalesce(bool_or(relname = 'format'), false) as ours, count(*) > 0 as something
from pg_class join pg_namespace on pg_namespace.oid = relnamespace
where nspname = 'noetl'

-- name: version
select version from noetl.format

-- name: one_at_a_time
select pg_advisory_xact_lock(7838170312)

-- name: make_room
create schema if not exists noetl

-- name: count_versions
create table noetl.format (version integer not null)

-- name: first_version
insert into noetl.format (version) values (0)

-- name: set_version
update noetl.format set version = $1

-- name: unname_events
delete from noetl.event_name

-- name: name_event
insert into noetl.event_name (name, source, entity, status, id_field) values ($1, $2, $3, $4, $5)

-- name: durable
-- Whoever has switched it off for other uses does not get a log that forgets.
select set_config('synchronous_commit', 'on', false)
where current_setting('synchronous_commit') = 'off'

-- name: enter
-- token, pid, host, seconds of the lease, a term above all that this process had. It waits for a
-- commit of an earlier connection that is still under way, and shuts out those that come later.
with before as (
    select expires_at > now() as alive from noetl.process where token = $1
)
insert into noetl.process (token, pid, host, expires_at, term)
values ($1, $2, $3, now() + $4 * interval '1 second', $5)
on conflict (token) do update
set term = greatest(process.term + 1, excluded.term), expires_at = excluded.expires_at
returning term, batch, xid, coalesce((select alive from before), false) as alive

-- name: strike_out
delete from noetl.process
where expires_at < now() - interval '1 day'
    and not exists (select from noetl.execution where execution.owner = process.token)

-- name: renew
-- Not one that has run out: others may have taken over since.
update noetl.process set expires_at = now() + $2 * interval '1 second'
where token = $1 and expires_at > now()

-- name: leave
update noetl.process set expires_at = now() where token = $1

-- name: strike_me_out
delete from noetl.process
where token = $1 and not exists (select from noetl.execution where execution.owner = $1)

-- name: append_one
-- token, term, batch; execution_id, expected, last, at, events
with mine as (
    update noetl.process set batch = $3, xid = pg_current_xact_id()
    where token = $1 and term = $2
    returning 1
),
moved as (
    update noetl.execution set seq = $6, updated_at = $7
    where execution_id = $4 and seq = $5 and (owner = $1 or owner is null)
        and exists (select from mine)
    returning 1
)
insert into noetl.decision (execution_id, first_seq, last_seq, at, events)
select $4, $5 + 1, $6, $7, $8 from moved

-- name: append_moved
-- token, term, batch; columns of: moved executions, decisions
with mine as (
    update noetl.process set batch = $3, xid = pg_current_xact_id()
    where token = $1 and term = $2
    returning 1
),
given as (
    select * from unnest(
        string_to_array($4, e'\x1f'), string_to_array($5, ',')::bigint[],
        string_to_array($6, ',')::bigint[], string_to_array($7, ',')::bigint[]
    ) as given (execution_id, expected, last, at)
),
moved as (
    update noetl.execution set seq = given.last, updated_at = given.at
    from given
    where execution.execution_id = given.execution_id and execution.seq = given.expected
        and (execution.owner = $1 or execution.owner is null) and exists (select from mine)
    returning execution.execution_id
),
appended as (
    insert into noetl.decision (execution_id, first_seq, last_seq, at, events)
    select * from unnest(
        string_to_array($8, e'\x1f'), string_to_array($9, ',')::bigint[],
        string_to_array($10, ',')::bigint[], string_to_array($11, ',')::bigint[],
        string_to_array($12, e'\x1f')
    ) as given (execution_id, first_seq, last_seq, at, events)
    where given.execution_id in (select execution_id from moved)
)
select
    exists (select from mine) as mine,
    array(select execution_id from given except all select execution_id from moved) as missed

-- name: append_all
-- token, term, batch; columns of: moved executions, decisions, rows with the expected seq,
-- snapshots, printed lines, obeyed notes, released claims, executions that begin under a place; of
-- those that bring their claim: how many under each limit, under which limit each, what is kept
with mine as (
    update noetl.process set batch = $3, xid = pg_current_xact_id()
    where token = $1 and term = $2
    returning 1
),
given as (
    select * from unnest(
        string_to_array($4, e'\x1f'), string_to_array($5, ',')::bigint[],
        string_to_array($6, ',')::bigint[], string_to_array($7, ',')::bigint[]
    ) as given (execution_id, expected, last, at)
),
written as (
    select * from unnest(
        $13::text[], $14::text[], $15::text[], $16::text[], $17::bigint[], $18::bigint[],
        $19::text[], $20::bigint[], $21::text[], $22::text[], $23::text[], $24::text[],
        $25::integer[], $26::bigint[], $27::bigint[], $28::text[], $29::bigint[], $30::bigint[],
        $31::bigint[]
    ) as written (
        execution_id, path, digest, status, started_at, updated_at, version, finished_at,
        parent_execution_id, owner, error, limit_key, asks, queued_at, wake_at,
        origin_execution_id, origin_seq, seq, expected
    )
),
moved as (
    update noetl.execution set seq = given.last, updated_at = given.at
    from given
    where execution.execution_id = given.execution_id and execution.seq = given.expected
        and (execution.owner = $1 or execution.owner is null) and exists (select from mine)
    returning execution.execution_id
),
-- Locked, so that it is there until the commit: whoever sweeps claims locks them first.
placed as (
    select execution_id from noetl.limit_claim
    where execution_id = any ($46::text[]) and holder = '' and granted_at is not null
    for key share
),
roomy as (
    select limit_group
    from noetl.limit_room($47::text[], $48::text[], $49::integer[], $50::integer[], $51::integer[])
        as found (limit_group)
    where exists (select from mine)
),
taken as (
    insert into noetl.limit_claim (
        execution_id, holder, limit_group, limit_key, at_once, total, seconds, priority, turn,
        asked_at, granted_at, process
    )
    select
        execution_id, '', limit_group, limit_key, at_once, total, 0, priority, 0, noetl.now_ms(),
        noetl.now_ms(), $1
    from unnest(
        $54::text[], $55::text[], $56::text[], $57::integer[], $58::integer[], $59::integer[]
    ) as given (execution_id, limit_group, limit_key, at_once, total, priority)
    where limit_group in (select limit_group from roomy)
    on conflict do nothing
),
-- Those that share a batch with their end leave no claim: `released` does not see what `taken` made.
brought as (
    select execution_id
    from unnest($52::text[], $53::text[]) as given (execution_id, limit_group)
    where limit_group in (select limit_group from roomy)
),
begun as (
    insert into noetl.execution (
        execution_id, path, digest, status, started_at, updated_at, version, finished_at,
        parent_execution_id, owner, error, limit_key, asks, queued_at, wake_at,
        origin_execution_id, origin_seq, seq
    )
    select
        execution_id, path, digest, status, started_at, updated_at, version, finished_at,
        parent_execution_id, owner, error, limit_key, asks, queued_at, wake_at,
        origin_execution_id, origin_seq, seq
    from written
    where expected = 0 and exists (select from mine)
        and (
            execution_id <> all ($46::text[])
            or execution_id in (select execution_id from placed)
            or execution_id in (select execution_id from brought)
        )
    on conflict do nothing
    returning execution_id
),
changed as (
    update noetl.execution set
        path = written.path, digest = written.digest, status = written.status,
        started_at = written.started_at, updated_at = written.updated_at,
        version = written.version, finished_at = written.finished_at,
        parent_execution_id = written.parent_execution_id, owner = written.owner,
        error = written.error, limit_key = written.limit_key, asks = written.asks,
        queued_at = written.queued_at, wake_at = written.wake_at,
        origin_execution_id = written.origin_execution_id, origin_seq = written.origin_seq,
        seq = written.seq
    from written
    where execution.execution_id = written.execution_id and execution.seq = written.expected
        and (execution.owner = $1 or execution.owner is null)
        and written.expected > 0 and exists (select from mine)
    returning execution.execution_id
),
advanced as (
    select execution_id from moved
    union all select execution_id from begun
    union all select execution_id from changed
),
appended as (
    insert into noetl.decision (execution_id, first_seq, last_seq, at, events)
    select * from unnest(
        string_to_array($8, e'\x1f'), string_to_array($9, ',')::bigint[],
        string_to_array($10, ',')::bigint[], string_to_array($11, ',')::bigint[],
        string_to_array($12, e'\x1f')
    ) as given (execution_id, first_seq, last_seq, at, events)
    where given.execution_id in (select execution_id from advanced)
),
kept as (
    insert into noetl.snapshot (execution_id, seq, body)
    select * from unnest($32::text[], $33::bigint[], $34::bytea[])
        as given (execution_id, seq, body)
    where given.execution_id in (select execution_id from advanced)
    on conflict (execution_id) do update set seq = excluded.seq, body = excluded.body
),
told as (
    insert into noetl.printed (execution_id, step, task_run_id, attempt, at, stream, text)
    select execution_id, step, task_run_id, attempt, at, stream, text
    from unnest(
        $35::text[], $36::text[], $37::text[], $38::integer[], $39::bigint[], $40::text[],
        $41::text[]
    ) with ordinality
        as given (execution_id, step, task_run_id, attempt, at, stream, text, place)
    where exists (select from mine)
    order by place
),
obeyed as (
    delete from noetl.note using unnest($42::text[], $43::bigint[]) as given (execution_id, note_id)
    where note.note_id = given.note_id
        and given.execution_id in (select execution_id from advanced)
),
released as (
    delete from noetl.limit_claim
    using unnest($44::text[], $45::text[]) as given (execution_id, holder)
    where limit_claim.execution_id = given.execution_id
        and (given.holder = '' or limit_claim.holder = given.holder)
        and given.execution_id in (select execution_id from advanced)
)
select
    exists (select from mine) as mine,
    array(
        (select execution_id from given union all select execution_id from written)
        except all select execution_id from advanced
    ) as missed

-- name: settled
-- Those of a batch, by execution and first seq, that the transaction with this number wrote.
select decision.execution_id
from unnest($1::text[], $2::bigint[]) as given (execution_id, first_seq)
join noetl.decision using (execution_id, first_seq)
where decision.xmin = $3::xid8::xid

-- name: stand_at
select execution_id, seq from noetl.execution where execution_id = any ($1::text[])

-- name: read_decisions
-- Two ranges that the planner can judge: with one that begins where another query ends it reads
-- the whole table.
select first_seq, last_seq, at, events from (
    (
        select first_seq, last_seq, at, events from noetl.decision
        where execution_id = $1 and first_seq <= $2 + 1
        order by first_seq desc limit 1
    )
    union all
    (
        select first_seq, last_seq, at, events from noetl.decision
        where execution_id = $1 and first_seq > $2 + 1
        order by first_seq limit $3
    )
) as found
where last_seq > $2
order by first_seq limit $3

-- name: read_snapshot
select seq, body from noetl.snapshot where execution_id = $1

-- name: find_execution
select
    execution_id, path, digest, status, started_at, updated_at, version, finished_at,
    parent_execution_id, owner, error, limit_key, asks, queued_at, wake_at,
    origin_execution_id, origin_seq, seq
from noetl.execution where execution_id = $1

-- name: page_executions
select
    execution_id, path, digest, status, started_at, updated_at, version, finished_at,
    parent_execution_id, owner, error, limit_key, asks, queued_at, wake_at,
    origin_execution_id, origin_seq, seq
from noetl.execution
where ($1::text is null or status = $1)
    and ($2::text is null or path = $2)
    and ($3::text is null or parent_execution_id = $3)
    and (
        $4::text is null
        or number < (select number from noetl.execution where execution_id = $4)
    )
order by number desc limit $5

-- name: page_executions_between
select
    execution_id, path, digest, status, started_at, updated_at, version, finished_at,
    parent_execution_id, owner, error, limit_key, asks, queued_at, wake_at,
    origin_execution_id, origin_seq, seq
from noetl.execution
where ($1::text is null or status = $1)
    and ($2::text is null or path = $2)
    and ($3::text is null or parent_execution_id = $3)
    and (
        $4::text is null
        or (started_at, number)
            < (select started_at, number from noetl.execution where execution_id = $4)
    )
    and ($6::bigint is null or started_at >= $6)
    and ($7::bigint is null or started_at < $7)
order by started_at desc, number desc limit $5

-- name: asking_executions
-- The execution that ended the page before, and how many.
select
    execution_id, path, digest, status, started_at, updated_at, version, finished_at,
    parent_execution_id, owner, error, limit_key, asks, queued_at, wake_at,
    origin_execution_id, origin_seq, seq
from noetl.execution
where asks is not null and (
    $1::text is null
    or number < (select number from noetl.execution where execution_id = $1)
)
order by number desc limit $2

-- name: children
select
    execution_id, path, digest, status, started_at, updated_at, version, finished_at,
    parent_execution_id, owner, error, limit_key, asks, queued_at, wake_at,
    origin_execution_id, origin_seq, seq
from noetl.execution where parent_execution_id = $1 order by number

-- name: executions_starting
select
    execution_id, path, digest, status, started_at, updated_at, version, finished_at,
    parent_execution_id, owner, error, limit_key, asks, queued_at, wake_at,
    origin_execution_id, origin_seq, seq
from noetl.execution where execution_id >= $1 and execution_id < $2 order by number desc limit $3

-- name: unfinished
select execution_id from noetl.execution
where execution_id in (select json_array_elements_text($1::text::json)) and finished_at is null

-- name: count_executions
select count(*) from noetl.execution where status = $1

-- name: estimate_executions
-- What the statistics say; null where they say nothing, or so little that counting is cheap.
select (reltuples * frequency)::bigint
from pg_class cross join (
    select unnest(most_common_vals::text::text[]) as status, unnest(most_common_freqs) as frequency
    from pg_stats
    where schemaname = 'noetl' and tablename = 'execution' and attname = 'status'
) as known
where pg_class.oid = 'noetl.execution'::regclass and reltuples > 100000 and known.status = $1

-- name: keep_playbook
insert into noetl.playbook (digest, path, text, folder) values ($1, $2, $3, $4)
on conflict (digest) do update set path = excluded.path, folder = excluded.folder
where playbook.folder is distinct from excluded.folder or playbook.path <> excluded.path

-- name: read_playbook
select text, folder from noetl.playbook where digest = $1

-- name: leave_note
-- execution_id, kind, fields, mark; no answer: no such execution. One that is queued may be about to
-- be parked, which would not see this note: whoever comes first is waited for.
with found as (
    select execution_id, owner from noetl.execution where execution_id = $1
),
queued as (
    select execution_id from noetl.execution
    where execution_id = $1 and status = 'queued' for share
),
note as (
    insert into noetl.note (execution_id, kind, fields, mark)
    select execution_id, $2, $3, $4 from found where (select count(*) from queued) >= 0
    on conflict (mark) do nothing
)
select pg_notify('noetl_note', coalesce(owner, '')) from found

-- name: any_note
select exists (
    select from noetl.note join noetl.execution using (execution_id) where execution.owner = $1
)

-- name: waiting_notes
select note.note_id, note.execution_id, note.kind, note.fields
from noetl.note join noetl.execution using (execution_id)
where execution.owner = $1
order by note.note_id

-- name: drop_notes
delete from noetl.note where note_id = any ($1::bigint[])

-- name: owner_of
select
    execution.owner, process.pid, process.host,
    coalesce(process.expires_at > now(), false) as alive
from noetl.execution left join noetl.process on process.token = execution.owner
where execution.execution_id = $1

-- name: claim_execution
-- execution_id, the new owner, the one before: only if that is still so, and still dead
update noetl.execution set owner = $2, queued_at = null
where execution_id = $1 and owner is not distinct from $3 and not exists (
    select from noetl.process where token = $3 and expires_at > now()
)
returning 1

-- name: release_execution
update noetl.execution set owner = null where execution_id = $1 and owner = $2

-- name: owned_executions
select execution_id from noetl.execution where owner = $1 and finished_at is null order by number

-- name: leave_executions
update noetl.execution set owner = null where owner = $1

-- name: draw_term
update noetl.term set last = last + 1 returning last

-- name: any_orphan
select exists (
    select from noetl.execution
    where finished_at is null and owner is null and queued_at is null
) or exists (
    select from noetl.execution
    where owner = any (array(select owner from noetl.dead_owner)) and finished_at is null
)

-- name: adopt
-- owner, term, limit. Said again, for want of an answer, it names again what it has taken.
-- The dead are gathered before any row is locked: an owner that came in between is not one.
with taken as (
    select execution_id, number from noetl.execution where owner = $1 and term = $2
),
free as (
    select execution_id, number from noetl.execution
    where finished_at is null and owner is null and queued_at is null
    order by number limit $3
    for update skip locked
),
abandoned as (
    select execution_id, number from noetl.execution
    where owner = any (array(select owner from noetl.dead_owner)) and finished_at is null
    order by number limit $3
    for update skip locked
),
orphans as (
    select execution_id from (select * from free union all select * from abandoned) as orphan
    order by number limit greatest(0, $3 - (select count(*) from taken))
),
adopted as (
    update noetl.execution set owner = $1, term = $2
    from orphans where execution.execution_id = orphans.execution_id
    returning execution.execution_id, execution.number
)
select execution_id from (select * from taken union all select * from adopted) as mine
order by number

-- name: read_printed
select execution_id, step, task_run_id, attempt, at, stream, text from noetl.printed
where execution_id = $1 and ($2::text is null or step = $2)
order by number limit $3 offset $4

-- name: ended_roots
select execution_id, path, status, finished_at, digest from noetl.execution as ended
where finished_at >= $2 and (finished_at > $2 or execution_id > $3) and finished_at < $1
    and not exists (
        select from noetl.execution as parent
        where parent.execution_id = ended.parent_execution_id
    )
order by finished_at, execution_id limit $4

-- name: family
-- Nothing where one of them has not ended, or a restart outside refers to one (RST-3).
with recursive family (number, execution_id, finished_at) as (
    select number, execution_id, finished_at from noetl.execution where execution_id = $1
    union
    select child.number, child.execution_id, child.finished_at
    from family join noetl.execution as child on child.parent_execution_id = family.execution_id
)
select execution_id from family
where not exists (select from family where finished_at is null) and not exists (
    select from family as named
    join noetl.execution as restart on restart.origin_execution_id = named.execution_id
    where restart.execution_id not in (select execution_id from family)
)
order by number

-- name: remove_family
with recursive family (number, execution_id, finished_at) as (
    select number, execution_id, finished_at from noetl.execution where execution_id = $1
    union
    select child.number, child.execution_id, child.finished_at
    from family join noetl.execution as child on child.parent_execution_id = family.execution_id
),
chosen as (
    select execution_id from family
    where not exists (select from family where finished_at is null) and not exists (
        select from family as named
        join noetl.execution as restart on restart.origin_execution_id = named.execution_id
        where restart.execution_id not in (select execution_id from family)
    )
),
gone as (
    delete from noetl.execution using chosen
    where execution.execution_id = chosen.execution_id
    returning execution.execution_id, execution.number
),
noted as (
    insert into noetl.removed_execution (execution_id, at, remaining)
    select execution_id, $2, true from gone
    on conflict (execution_id) do update set at = excluded.at, remaining = true
),
snapshots as (
    delete from noetl.snapshot using gone where snapshot.execution_id = gone.execution_id
),
notes as (delete from noetl.note using gone where note.execution_id = gone.execution_id),
claims as (
    delete from noetl.limit_claim using gone where limit_claim.execution_id = gone.execution_id
)
select execution_id from gone order by number

-- name: removals_left
select execution_id from noetl.removed_execution as gone
where remaining and at < $1 and not exists (
    select from noetl.execution as restart where restart.origin_execution_id = gone.execution_id
) and not exists (select from noetl.body_use where source = gone.execution_id)
order by at, execution_id limit $2

-- name: clear_removed
with decisions as (
    delete from noetl.decision where ctid = any (
        array(select ctid from noetl.decision where execution_id = $1 limit $2)
    )
    returning 1
),
lines as (
    delete from noetl.printed where ctid = any (
        array(select ctid from noetl.printed where execution_id = $1 limit $2)
    )
    returning 1
),
cleared as (
    select greatest((select count(*) from decisions), (select count(*) from lines)) < $2 as whole
),
settled as (
    update noetl.removed_execution set remaining = false
    where execution_id = $1 and (select whole from cleared)
)
select whole from cleared

-- name: is_removed
select 1 from noetl.removed_execution where execution_id = $1

-- name: forget_removals
delete from noetl.removed_execution where at < $1 and not remaining
