-- The statements of the catalog, of keys, tokens, credentials and triggers, and of the roster.

-- name: keep_text
insert into playbook (digest, path, text) values (?, ?, ?) on conflict (digest) do nothing

-- name: register_playbook
insert into catalog (
    path, version, digest, registered_at, name, description, labels, original_digest, version_label
)
values (?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: newest_playbook
select
    path, version, digest, registered_at, name, description, labels, original_digest, version_label
from catalog where path = ? and removed_at is null order by version desc limit 1

-- name: find_playbook
select
    path, version, digest, registered_at, name, description, labels, original_digest, version_label
from catalog where path = ? and version = ? and removed_at is null

-- name: labelled_playbooks
select
    path, version, digest, registered_at, name, description, labels, original_digest, version_label
from catalog where path = ? and version_label = ? and removed_at is null order by version desc

-- name: page_catalog
-- From path to path by steps through the index: older versions are not read.
with recursive paths (path, place) as (
    select min(path), 1 from catalog where path > ?1 and removed_at is null
    union all
    select (
        select min(catalog.path) from catalog
        where catalog.path > paths.path and catalog.removed_at is null
    ), place + 1
    from paths where paths.path is not null and place < ?2
)
select
    catalog.path, version, digest, registered_at, name, description, labels, original_digest,
    version_label
from paths join catalog on catalog.path = paths.path
    and version = (
        select max(newest.version) from catalog as newest
        where newest.path = paths.path and newest.removed_at is null
    )
order by place limit ?2

-- name: page_versions
select
    path, version, digest, registered_at, name, description, labels, original_digest, version_label
from catalog where path = ?1 and version < ifnull(?2, 9223372036854775807) and removed_at is null
order by version desc limit ?3

-- name: last_version
select ifnull(max(version), 0) from catalog where path = ?

-- name: remove_version
update catalog set removed_at = ?3 where path = ?1 and version = ?2 and removed_at is null

-- name: claim_key
insert into execution_key (key, fingerprint, execution_id, claimed_at) values (?, ?, ?, ?)
on conflict (key) do nothing

-- name: find_key
select execution_id, fingerprint from execution_key where key = ?

-- name: prune_keys
delete from execution_key where claimed_at < ?

-- name: add_token
insert into api_token (token_id, name, role, digest, created_at, expires_at, revoked_at)
values (?, ?, ?, ?, ?, ?, ?)
on conflict do nothing

-- name: find_token
select token_id, name, role, digest, created_at, expires_at, revoked_at
from api_token where digest = ?

-- name: all_tokens
select token_id, name, role, digest, created_at, expires_at, revoked_at
from api_token order by created_at, token_id

-- name: forget_sessions
delete from api_token where token_id like '%.%' and (revoked_at is not null or expires_at <= ?)

-- name: revoke_token
update api_token set revoked_at = ifnull(revoked_at, ?2) where token_id = ?1

-- name: keep_credential
insert or replace into credential (name, kind, key_id, sealed, updated_at) values (?, ?, ?, ?, ?)

-- name: find_credential
select name, kind, key_id, sealed, updated_at from credential where name = ?

-- name: all_credentials
select name, kind, key_id, sealed, updated_at from credential order by name

-- name: remove_credential
delete from credential where name = ?

-- name: worker_seen
insert or replace into worker (
    name, pool, slots, version, host, pid, started_at, seen_at, busy, server
)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: worker_gone
delete from worker where name = ?

-- name: workers
select name, pool, slots, version, host, pid, started_at, seen_at, busy, server
from worker where seen_at >= ? order by name

-- name: server_seen
insert or replace into server (name, address, version, started_at, seen_at) values (?, ?, ?, ?, ?)

-- name: server_gone
delete from server where name = ?

-- name: servers
select name, address, version, started_at, seen_at from server where seen_at >= ? order by name

-- name: claim_limit
insert or ignore into limit_claim (
    execution_id, holder, limit_group, limit_key, at_once, total, count, seconds, priority, turn,
    asked_at, process
)
values (
    :execution_id, :holder, :group, :key, :at_once, :total, :count, :seconds, :priority,
    max(
        (
            select ifnull(max(turn) + 1, 0) from limit_claim
            where limit_group = :group and limit_key = :key and granted_at is null
        ),
        (
            select ifnull(min(turn), 0) from limit_claim
            where limit_group = :group and granted_at is null
        )
    ),
    :now, :process
)

-- name: next_claim
-- The first of each key that has a place; of those the one whose turn it is.
with recursive keys (key) as (
    select min(limit_key) from limit_claim where limit_group = :group and granted_at is null
    union all
    select (
        select min(limit_key) from limit_claim
        where limit_group = :group and granted_at is null and limit_key > keys.key
    )
    from keys where key is not null
)
select head.execution_id, head.holder, head.limit_key, head.count, head.seconds
from keys join limit_claim as head
    on (head.execution_id, head.holder) = (
        select execution_id, holder from limit_claim
        where limit_group = :group and limit_key = keys.key and granted_at is null
        order by priority desc, turn, asked_at, execution_id limit 1
    )
where (head.at_once is null or head.at_once > (
        select count(*) from limit_claim as held
        where held.limit_group = :group and held.limit_key = head.limit_key
            and held.granted_at is not null
    ))
    and (head.count is null or head.count > (
        select count(*) from limit_begun
        where limit_group = :group and limit_key = head.limit_key
            and at > :now - head.seconds * 1000
    ))
    and (head.total is null or head.total > (
        select count(*) from limit_claim as held
        where held.limit_group = :group and held.granted_at is not null
    ))
order by head.priority desc, head.turn, head.asked_at, head.execution_id limit 1

-- name: grant_claim
update limit_claim set granted_at = ? where execution_id = ? and holder = ?

-- name: count_begun
insert into limit_begun (limit_group, limit_key, at, until) values (?, ?, ?, ?)

-- name: forget_begun
delete from limit_begun where until < ?

-- name: waiting_groups
-- By steps through the index, as long as there are groups, however many wait in each.
with recursive named (limit_group) as (
    select min(limit_group) from limit_claim where granted_at is null
    union all
    select (
        select min(limit_group) from limit_claim
        where granted_at is null and limit_claim.limit_group > named.limit_group
    )
    from named where named.limit_group is not null
)
select limit_group from named where limit_group is not null

-- name: park_execution
update execution set owner = null, queued_at = ?1
where execution_id = ?2 and owner = ?3 and status = 'queued'
    and exists (
        select 1 from limit_claim
        where limit_claim.execution_id = ?2 and holder = '' and granted_at is null
    )
    and not exists (select 1 from note where note.execution_id = ?2)

-- name: granted_claims
select execution_id, holder from limit_claim where granted_at >= ?

-- name: release_claim
delete from limit_claim where execution_id = ?1 and (?2 = '' or holder = ?2)

-- name: withdraw_claim
delete from limit_claim where execution_id = ? and granted_at is null

-- name: unbegun_claims
-- Of processes that may have died before the execution existed, and of executions that have ended;
-- for those there is no process to ask about, nor for one that was asked for before a time.
select distinct claim.execution_id,
    iif(execution.finished_at is null and claim.asked_at >= ?, process.pid, null),
    process.ticks, process.boot
from limit_claim as claim left join process on process.token = claim.process
left join execution on execution.execution_id = claim.execution_id
where execution.execution_id is null or execution.finished_at is not null

-- name: limit_place
-- Counted up to a thousand, since whoever starts something does not wait for a long queue to be counted.
select iif(claim.granted_at is not null, 0, (
    select 1 + count(*) from (
        select 1 from limit_claim as other indexed by limit_order
        where other.limit_group = claim.limit_group and other.granted_at is null
            and other.priority > claim.priority
        union all
        select 1 from limit_claim as other indexed by limit_order
        where other.limit_group = claim.limit_group and other.granted_at is null
            and other.priority = claim.priority
            and (other.turn, other.asked_at, other.execution_id)
                < (claim.turn, claim.asked_at, claim.execution_id)
        limit 1000
    )
))
from limit_claim as claim where execution_id = ? and holder = ?

-- name: limit_places
select
    claim.execution_id, claim.holder, claim.limit_group, claim.limit_key,
    iif(claim.granted_at is not null, 0, (
        select 1 + count(*) from limit_claim as other
        where other.limit_group = claim.limit_group and other.granted_at is null
            and (-other.priority, other.turn, other.asked_at, other.execution_id)
                < (-claim.priority, claim.turn, claim.asked_at, claim.execution_id)
    )),
    ifnull(claim.granted_at, claim.asked_at)
from limit_claim as claim where execution_id = ?

-- name: limit_holding
select execution_id from limit_claim
where limit_group = ? and (? is null or limit_key = ?) and granted_at is not null
group by execution_id order by min(granted_at), execution_id limit ?

-- name: limit_holders
select execution_id from limit_claim where limit_group = ? and limit_key = ?
order by asked_at, granted_at is null, execution_id

-- name: put_trigger
insert or replace into trigger_state (
    path, kind, version, paused, since, planned_at, due_at, last_at,
    last_execution_id, skipped_at, skipped_why, waits_for
)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: find_trigger
select
    path, kind, version, paused, since, planned_at, due_at, last_at,
    last_execution_id, skipped_at, skipped_why, waits_for
from trigger_state where path = ?

-- name: page_triggers
select
    path, kind, version, paused, since, planned_at, due_at, last_at,
    last_execution_id, skipped_at, skipped_why, waits_for
from trigger_state where path > ? and kind <> 'ends' order by path limit ?

-- name: page_triggers_of
select
    path, kind, version, paused, since, planned_at, due_at, last_at,
    last_execution_id, skipped_at, skipped_why, waits_for
from trigger_state where kind = ? and path > ? order by path limit ?

-- name: due_triggers
select
    path, kind, version, paused, since, planned_at, due_at, last_at,
    last_execution_id, skipped_at, skipped_why, waits_for
from trigger_state indexed by trigger_due
where due_at <= ?1 and not paused and taken_until <= ?1 order by due_at limit ?2

-- name: take_trigger
update trigger_state set taken_until = ?2 where path = ?1

-- name: settle_trigger
update trigger_state set
    planned_at = ?5, due_at = ?6, last_at = ?7, last_execution_id = ?8, skipped_at = ?9,
    skipped_why = ?10, waits_for = ?11, taken_until = 0
where path = ?1 and version = ?2 and since = ?3 and planned_at is ?4 and not paused

-- name: note_start
update trigger_state set last_at = ?2, last_execution_id = ?3 where path = ?1

-- name: note_skip
update trigger_state set skipped_at = ?2, skipped_why = ?3 where path = ?1

-- name: remove_trigger
delete from trigger_state where path = ?

-- name: ended_since
select execution_id, path, status, finished_at from execution
where finished_at >= ?1 and (finished_at > ?1 or execution_id > ?2)
order by finished_at, execution_id limit ?3

-- name: find_kept
select path, task, key, fingerprint, execution_id, kept_at, expires_at, size, outcome from cache_entry
where entry_id = ?1 and expires_at > ?2

-- name: keep_outcome
insert into cache_entry (
    entry_id, path, task, key, fingerprint, execution_id, kept_at, expires_at, size,
    outcome
) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
on conflict (entry_id) do update set execution_id = excluded.execution_id,
kept_at = excluded.kept_at, expires_at = excluded.expires_at,
size = excluded.size, outcome = excluded.outcome

-- name: refer_to_bodies
insert into body_use (used_by, source, since) values (?1, ?2, ?3)
on conflict (used_by, source) do update set since = excluded.since

-- name: page_kept
select path, task, key, fingerprint, execution_id, kept_at, expires_at, size from cache_entry
where (?1 is null or path = ?1) and (?2 is null or task = ?2) and (?3 is null or key = ?3)
and expires_at > ?4
order by kept_at desc limit ?5

-- name: clear_kept
delete from cache_entry
where (?1 is null or path = ?1) and (?2 is null or task = ?2) and (?3 is null or key = ?3)

-- name: expire_kept
delete from cache_entry where expires_at <= ?1

-- name: free_bodies
-- Of entries that are gone or hold another outcome by now, and of executions that are gone.
delete from body_use where since <= ?1 and not exists (
    select 1 from cache_entry as entry
    where entry.entry_id = substr(body_use.used_by, 1, 64)
    and body_use.used_by = entry.entry_id || '/' || entry.execution_id
) and not exists (
    select 1 from execution where execution.execution_id = body_use.used_by
)

-- name: needed_bodies
select distinct source from body_use

-- name: note_order
insert into audit (at, who, role, what, about, result, detail)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7)

-- name: page_orders
select at, who, role, what, about, result, detail from audit
where (?1 is null or at >= ?1) and (?2 is null or at < ?2)
and (?3 is null or who = ?3) and (?4 is null or what = ?4)
order by at desc, number desc limit ?5

-- name: put_pool
insert into pool (name, at_once, set_at) values (?1, ?2, ?3)
on conflict (name) do update set at_once = excluded.at_once, set_at = excluded.set_at

-- name: bind_waiting
update limit_claim set total = ?2 where limit_group = ?1 and granted_at is null

-- name: remove_pool
delete from pool where name = ?1

-- name: all_pools
select name, at_once, set_at from pool order by name
