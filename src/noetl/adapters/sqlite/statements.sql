-- Every statement by its name. `@rows(n)` stands for as many rows of n parameters as a batch
-- needs; rows of nulls fill it up, so that a handful of statements serves every batch.

-- name: begin
begin immediate

-- name: commit
commit

-- name: rollback
rollback

-- name: start_executions
insert into execution (
    execution_id, path, digest, status, started_at, updated_at, version, finished_at,
    parent_execution_id, owner, error, limit_key, asks, queued_at, wake_at,
    origin_execution_id, origin_seq, seq
)
select * from (values @rows(18)) where column1 is not null
on conflict do nothing

-- name: holds_place
select 1 from limit_claim where execution_id = ? and holder = '' and granted_at is not null

-- name: has_room
-- Whether one more may begin, and nobody waits for that.
select not exists (select 1 from limit_claim where limit_group = :group and granted_at is null)
    and (:at_once is null or :at_once > (
        select count(*) from limit_claim
        where limit_group = :group and limit_key = :key and granted_at is not null
    ))
    and (:total is null or :total > (
        select count(*) from limit_claim where limit_group = :group and granted_at is not null
    ))

-- name: take_place
insert or ignore into limit_claim (
    execution_id, holder, limit_group, limit_key, at_once, total, count, seconds, priority, turn,
    asked_at, granted_at, process
)
values (
    :execution_id, :holder, :group, :key, :at_once, :total, :count, :seconds, :priority, 0, :now,
    :now, :process
)

-- name: standing_executions
-- execution_id, expected, who writes; how many of them stand there and are nobody else's
select count(*) from (values @rows(3)) as given
cross join execution on execution.execution_id = given.column1
where ifnull(execution.owner, given.column3) = given.column3 and given.column2 = (
    select last_seq from decision
    where decision.execution_id = given.column1 order by first_seq desc limit 1
)

-- name: change_executions
-- the columns of the row, then expected and who writes
update execution set
    path = given.column2, digest = given.column3, status = given.column4,
    started_at = given.column5, updated_at = given.column6, version = given.column7,
    finished_at = given.column8, parent_execution_id = given.column9, owner = given.column10,
    error = given.column11, limit_key = given.column12, asks = given.column13,
    queued_at = given.column14, wake_at = given.column15, origin_execution_id = given.column16,
    origin_seq = given.column17, seq = given.column18
from (values @rows(20)) as given
where execution.execution_id = given.column1
    and ifnull(execution.owner, given.column20) = given.column20 and given.column19 = (
        select last_seq from decision
        where decision.execution_id = given.column1 order by first_seq desc limit 1
    )

-- name: append_one
insert into decision (execution_id, first_seq, last_seq, at, events)
values (?, ?, ?, ?, cast(? as text))

-- name: append_decisions
insert into decision (execution_id, first_seq, last_seq, at, events)
select column1, column2, column3, column4, cast(column5 as text)
from (values @rows(5)) where column1 is not null

-- name: keep_snapshots
insert or replace into snapshot (execution_id, seq, body)
select * from (values @rows(3)) where column1 is not null

-- name: keep_printed
insert into printed (execution_id, step, task_run_id, attempt, at, stream, text)
select * from (values @rows(7)) where column1 is not null

-- name: stands_at
select
    owner,
    (
        select last_seq from decision
        where decision.execution_id = execution.execution_id order by first_seq desc limit 1
    )
from execution where execution_id = ?

-- name: read_decisions
select first_seq, last_seq, at, cast(events as blob) from decision
where execution_id = ?1 and last_seq > ?2 and first_seq >= coalesce(
    (
        select max(first_seq) from decision
        where execution_id = ?1 and first_seq <= ?2 + 1
    ),
    0
)
order by first_seq limit ?3

-- name: read_snapshot
select seq, body from snapshot where execution_id = ?

-- name: find_execution
select
    execution_id, path, digest, status, started_at, updated_at, version, finished_at,
    parent_execution_id, owner, error, limit_key, asks, queued_at, wake_at,
    origin_execution_id, origin_seq, seq
from execution_row where execution_id = ?

-- name: page_executions
-- `@lead` is the filter whose index is walked: the planner cannot choose, for a filter that may
-- be absent has no index.
select
    execution_id, path, digest, status, started_at, updated_at, version, finished_at,
    parent_execution_id, owner, error, limit_key, asks, queued_at, wake_at,
    origin_execution_id, origin_seq, seq
from execution_row
where @lead
    and (:status is null or status = :status)
    and (:path is null or path = :path)
    and (
        :before is null
        or number < (select number from execution where execution_id = :before)
    )
order by number desc limit :limit

-- name: page_executions_between
select
    execution_id, path, digest, status, started_at, updated_at, version, finished_at,
    parent_execution_id, owner, error, limit_key, asks, queued_at, wake_at,
    origin_execution_id, origin_seq, seq
from execution_row
where started_at >= ifnull(:since, 0) and started_at < ifnull(:until, 9223372036854775807)
    and (:status is null or status = :status)
    and (:path is null or path = :path)
    and (:parent is null or parent_execution_id = :parent)
    and (
        :before is null
        or (started_at, number)
            < (select started_at, number from execution where execution_id = :before)
    )
order by started_at desc, number desc limit :limit

-- name: lead_parent
parent_execution_id = :parent

-- name: lead_path
path = :path

-- name: lead_status
status = :status

-- name: lead_none
true

-- name: asking_executions
-- `?1` is the execution that ended the page before, `?2` how many.
select
    execution_id, path, digest, status, started_at, updated_at, version, finished_at,
    parent_execution_id, owner, error, limit_key, asks, queued_at, wake_at,
    origin_execution_id, origin_seq, seq
from execution_row
where asks is not null
    and (?1 is null or number < (select number from execution where execution_id = ?1))
order by number desc limit ?2

-- name: children
select
    execution_id, path, digest, status, started_at, updated_at, version, finished_at,
    parent_execution_id, owner, error, limit_key, asks, queued_at, wake_at,
    origin_execution_id, origin_seq, seq
from execution_row where parent_execution_id = ? order by number

-- name: executions_starting
select
    execution_id, path, digest, status, started_at, updated_at, version, finished_at,
    parent_execution_id, owner, error, limit_key, asks, queued_at, wake_at,
    origin_execution_id, origin_seq, seq
from execution_row where execution_id >= ?1 and execution_id < ?2 order by number desc limit ?3

-- name: unfinished
select execution_id from execution
where execution_id in (select value from json_each(?1)) and finished_at is null

-- name: count_executions
select count(*) from execution where status = ?

-- name: keep_playbook
insert into playbook (digest, path, text, folder) values (?, ?, ?, ?)
on conflict (digest) do update set path = excluded.path, folder = excluded.folder
where folder is not excluded.folder or path <> excluded.path

-- name: read_playbook
select text, folder from playbook where digest = ?

-- name: leave_note
insert into note (execution_id, kind, fields)
select execution_id, :kind, :fields from execution where execution_id = :execution_id

-- name: waiting_notes
-- From the notes to their executions, for there are few of them.
select note.note_id, note.execution_id, note.kind, note.fields
from note cross join execution using (execution_id)
where execution.owner = ?
order by note.note_id

-- name: drop_notes
delete from note where note_id in (select column1 from (values @rows(1)))

-- name: seen_changes
pragma data_version

-- name: owner_of
select execution.owner, process.pid, process.ticks, process.boot
from execution left join process on process.token = execution.owner
where execution.execution_id = ?

-- name: owners
-- Every owner once, by steps through the index: as long as there are owners, not executions.
with recursive named (owner) as (
    select min(owner) from execution where owner is not null
    union all
    select (select min(execution.owner) from execution where execution.owner > named.owner)
    from named where named.owner is not null
)
select named.owner, process.pid, process.ticks, process.boot
from named left join process on process.token = named.owner
where named.owner is not null

-- name: free_executions
select number, execution_id from execution
where finished_at is null and owner is null and queued_at is null order by number limit ?

-- name: left_executions
select number, execution_id from execution
where owner = ? and finished_at is null order by number limit ?

-- name: owned_executions
select execution_id from execution where owner = ? and finished_at is null order by number

-- name: leave_executions
update execution set owner = null where owner = ?

-- name: draw_term
update term set last = last + 1 returning last

-- name: claim_execution
update execution set owner = ?, queued_at = null where execution_id = ?

-- name: release_execution
update execution set owner = null where execution_id = ? and owner = ?

-- name: register_process
insert or ignore into process (token, pid, ticks, boot) values (?, ?, ?, ?)

-- name: idle_processes
select token, pid, ticks, boot from process
where not exists (select 1 from execution where execution.owner = process.token)

-- name: forget_process
delete from process where token = ?

-- name: read_printed
select execution_id, step, task_run_id, attempt, at, stream, text from printed
where execution_id = ?1 and (?2 is null or step = ?2)
order by rowid limit ?3 offset ?4

-- name: ended_roots
select execution_id, path, status, finished_at, digest from execution as ended
where finished_at >= ?2 and (finished_at > ?2 or execution_id > ?3) and finished_at < ?1
    and not exists (
        select 1 from execution as parent where parent.execution_id = ended.parent_execution_id
    )
order by finished_at, execution_id limit ?4

-- name: family
-- Nothing where one of them has not ended, or a restart outside refers to one (RST-3).
with recursive family (number, execution_id, finished_at) as (
    select number, execution_id, finished_at from execution where execution_id = ?1
    union
    select child.number, child.execution_id, child.finished_at
    from family join execution as child on child.parent_execution_id = family.execution_id
)
select execution_id from family
where not exists (select 1 from family where finished_at is null) and not exists (
    select 1 from family as named
    join execution as restart on restart.origin_execution_id = named.execution_id
    where restart.execution_id not in (select execution_id from family)
)
order by number

-- name: note_removal
insert or replace into removed_execution (execution_id, at, remaining) values (?, ?, 1)

-- name: forget_snapshot
delete from snapshot where execution_id = ?

-- name: forget_notes
delete from note where execution_id = ?

-- name: forget_claims
delete from limit_claim where execution_id = ?

-- name: forget_execution
delete from execution where execution_id = ?

-- name: removals_left
select execution_id from removed_execution as gone where remaining and at < ?1 and not exists (
    select 1 from execution as restart where restart.origin_execution_id = gone.execution_id
) and not exists (select 1 from body_use where source = gone.execution_id)
order by at, execution_id limit ?2

-- name: clear_decisions
delete from decision where rowid in (
    select rowid from decision where execution_id = ?1 limit ?2
)

-- name: clear_printed
delete from printed where rowid in (
    select rowid from printed where execution_id = ?1 limit ?2
)

-- name: settle_removal
update removed_execution set remaining = 0 where execution_id = ?

-- name: is_removed
select 1 from removed_execution where execution_id = ?

-- name: forget_removals
delete from removed_execution where at < ? and not remaining

-- name: unname_events
delete from event_name

-- name: name_event
insert into event_name (name, source, entity, status, id_field) values (?, ?, ?, ?, ?)
