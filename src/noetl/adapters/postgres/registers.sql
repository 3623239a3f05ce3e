-- The statements of the catalog, of keys, tokens, credentials and triggers, and of the roster.

-- name: register_playbook
-- The row without its version, then text, original and mark. No answer: another was first.
with newest as (
    select * from noetl.catalog
    where path = $1 and removed_at is null order by version desc limit 1
),
texts as (
    insert into noetl.playbook (digest, path, text)
    select digest, $1, text from (values ($2, $9), ($7, $10)) as given (digest, text)
    where text is not null
    on conflict (digest) do nothing
),
made as (
    insert into noetl.catalog (
        path, version, digest, registered_at, name, description, labels, original_digest,
        version_label, mark
    )
    select
        $1, coalesce((select max(version) from noetl.catalog where path = $1), 0) + 1, $2,
        $3, $4, $5, $6, $7, $8, $11
    where not exists (select from newest where digest = $2)
    on conflict (path, version) do nothing
    returning *
)
select
    path, version, digest, registered_at, name, description, labels, original_digest,
    version_label, mark = $11 as fresh
from (select * from made union all select * from newest where digest = $2) as entry

-- name: newest_playbook
select
    path, version, digest, registered_at, name, description, labels, original_digest, version_label
from noetl.catalog where path = $1 and removed_at is null order by version desc limit 1

-- name: find_playbook
select
    path, version, digest, registered_at, name, description, labels, original_digest, version_label
from noetl.catalog where path = $1 and version = $2 and removed_at is null

-- name: labelled_playbooks
select
    path, version, digest, registered_at, name, description, labels, original_digest, version_label
from noetl.catalog where path = $1 and version_label = $2 and removed_at is null
order by version desc

-- name: page_catalog
-- From path to path by steps through the index: older versions are not read.
with recursive paths (path, place) as (
    select min(path), 1 from noetl.catalog where path > $1 and removed_at is null
    union all
    select (
        select min(catalog.path) from noetl.catalog
        where catalog.path > paths.path and catalog.removed_at is null
    ), place + 1
    from paths where paths.path is not null and place < $2
)
select
    entry.path, entry.version, entry.digest, entry.registered_at, entry.name, entry.description,
    entry.labels, entry.original_digest, entry.version_label
from paths cross join lateral (
    select * from noetl.catalog
    where catalog.path = paths.path and catalog.removed_at is null order by version desc limit 1
) as entry
order by place limit $2

-- name: page_versions
select
    path, version, digest, registered_at, name, description, labels, original_digest, version_label
from noetl.catalog
where path = $1 and ($2::integer is null or version < $2) and removed_at is null
order by version desc limit $3

-- name: remove_version
update noetl.catalog set removed_at = $3 where path = $1 and version = $2 and removed_at is null

-- name: claim_key
-- No answer: another was first, and this statement does not see it yet.
with made as (
    insert into noetl.execution_key (key, fingerprint, execution_id, claimed_at)
    values ($1, $2, $3, $4)
    on conflict (key) do nothing
    returning execution_id, fingerprint
)
select execution_id, fingerprint from made
union all select execution_id, fingerprint from noetl.execution_key where key = $1

-- name: find_key
select execution_id from noetl.execution_key where key = $1

-- name: prune_keys
delete from noetl.execution_key where claimed_at < $1

-- name: add_token
insert into noetl.api_token (token_id, name, role, digest, created_at, expires_at, revoked_at)
values ($1, $2, $3, $4, $5, $6, $7)
on conflict do nothing

-- name: find_token
select token_id, name, role, digest, created_at, expires_at, revoked_at
from noetl.api_token where digest = $1

-- name: all_tokens
select token_id, name, role, digest, created_at, expires_at, revoked_at
from noetl.api_token order by created_at, token_id

-- name: forget_sessions
delete from noetl.api_token where token_id like '%.%' and (revoked_at is not null or expires_at <= $1)

-- name: revoke_token
update noetl.api_token set revoked_at = coalesce(revoked_at, $2) where token_id = $1

-- name: keep_credential
insert into noetl.credential (name, kind, key_id, sealed, updated_at) values ($1, $2, $3, $4, $5)
on conflict (name) do update set
    kind = excluded.kind, key_id = excluded.key_id, sealed = excluded.sealed,
    updated_at = excluded.updated_at

-- name: find_credential
select name, kind, key_id, sealed, updated_at from noetl.credential where name = $1

-- name: all_credentials
select name, kind, key_id, sealed, updated_at from noetl.credential order by name

-- name: remove_credential
delete from noetl.credential where name = $1

-- name: lock_credentials
lock table noetl.credential in share row exclusive mode

-- name: worker_seen
insert into noetl.worker (
    name, pool, slots, version, host, pid, started_at, seen_at, busy, server
)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
on conflict (name) do update set
    pool = excluded.pool, slots = excluded.slots, version = excluded.version,
    host = excluded.host, pid = excluded.pid, started_at = excluded.started_at,
    seen_at = excluded.seen_at, busy = excluded.busy, server = excluded.server

-- name: worker_gone
delete from noetl.worker where name = $1

-- name: workers
select name, pool, slots, version, host, pid, started_at, seen_at, busy, server
from noetl.worker where seen_at >= $1 order by name

-- name: server_seen
insert into noetl.server (name, address, version, started_at, seen_at)
values ($1, $2, $3, $4, $5)
on conflict (name) do update set
    address = excluded.address, version = excluded.version, started_at = excluded.started_at,
    seen_at = excluded.seen_at

-- name: server_gone
delete from noetl.server where name = $1

-- name: servers
select name, address, version, started_at, seen_at
from noetl.server where seen_at >= $1 order by name

-- name: take_limits
select place from noetl.limit_take($1::json)

-- name: grant_limits
select execution_id, holder from noetl.limit_grant($1)

-- name: waiting_groups
-- By steps through the index: as long as there are groups, however many wait in each.
with recursive named (limit_group) as (
    select min(limit_group) from noetl.limit_claim where granted_at is null
    union all
    select (
        select min(limit_group) from noetl.limit_claim
        where granted_at is null and limit_claim.limit_group > named.limit_group
    )
    from named where named.limit_group is not null
)
select limit_group from named where limit_group is not null

-- name: park_executions
-- execution ids, owner. What another statement holds is left out: it is being granted or written
-- just now. An answer that was lost is found out by asking again for the owner.
with mine as (
    select execution_id from noetl.execution
    where execution_id = any ($1::text[]) and owner = $2 and status = 'queued'
        and not exists (
            select from noetl.note where note.execution_id = execution.execution_id
        )
    for update of execution skip locked
),
waiting as (
    select execution_id from noetl.limit_claim
    where execution_id in (select execution_id from mine) and holder = '' and granted_at is null
    for update skip locked
)
update noetl.execution set owner = null, queued_at = noetl.now_ms()
from waiting where execution.execution_id = waiting.execution_id
returning execution.execution_id

-- name: granted_claims
select execution_id, holder from noetl.limit_claim where granted_at >= noetl.now_ms() - 60000

-- name: release_claim
delete from noetl.limit_claim where execution_id = $1 and ($2 = '' or holder = $2)

-- name: withdraw_claim
delete from noetl.limit_claim where execution_id = $1 and granted_at is null

-- name: forget_begun
delete from noetl.limit_begun where until < noetl.now_ms()

-- name: lock_unbegun
-- Where no execution came of a claim, and its process has died or the claim is old. One on which a
-- commit rests just now is locked by it (see `append_all`), and left.
select execution_id from noetl.limit_claim
where not exists (
        select from noetl.execution where execution.execution_id = limit_claim.execution_id
    )
    and (
        asked_at < noetl.now_ms() - $1
        or not exists (
            select from noetl.process
            where process.token = limit_claim.process and process.expires_at > now()
        )
    )
for update of limit_claim skip locked

-- name: drop_unbegun
-- Of those that were locked, where there is no execution still: one may have been committed before
-- the lock. And of executions that have ended.
delete from noetl.limit_claim
where exists (
        select from noetl.execution
        where execution.execution_id = limit_claim.execution_id and finished_at is not null
    )
    or execution_id = any ($1::text[]) and not exists (
        select from noetl.execution where execution.execution_id = limit_claim.execution_id
    )

-- name: limit_places
select
    claim.execution_id, claim.holder, claim.limit_group, claim.limit_key,
    case when claim.granted_at is not null then 0 else (
        select 1 + count(*) from noetl.limit_claim as other
        where other.limit_group = claim.limit_group and other.granted_at is null
            and (-other.priority, other.turn, other.asked_at, other.execution_id)
                < (-claim.priority, claim.turn, claim.asked_at, claim.execution_id)
    ) end as place,
    coalesce(claim.granted_at, claim.asked_at) as since
from noetl.limit_claim as claim where execution_id = $1

-- name: limit_holding
select execution_id from noetl.limit_claim
where limit_group = $1 and ($2::text is null or limit_key = $2) and granted_at is not null
group by execution_id order by min(granted_at), execution_id limit $3

-- name: limit_holders
select execution_id from noetl.limit_claim
where limit_group = $1 and limit_key = $2 order by asked_at, granted_at is null, execution_id

-- name: put_trigger
insert into noetl.trigger_state (
    path, kind, version, paused, since, planned_at, due_at, last_at,
    last_execution_id, skipped_at, skipped_why, waits_for
)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
on conflict (path) do update set
    kind = excluded.kind, version = excluded.version, paused = excluded.paused,
    since = excluded.since, planned_at = excluded.planned_at, due_at = excluded.due_at,
    last_at = excluded.last_at, last_execution_id = excluded.last_execution_id,
    skipped_at = excluded.skipped_at, skipped_why = excluded.skipped_why,
    waits_for = excluded.waits_for, taken_until = 0

-- name: find_trigger
select
    path, kind, version, paused, since, planned_at, due_at, last_at,
    last_execution_id, skipped_at, skipped_why, waits_for
from noetl.trigger_state where path = $1

-- name: page_triggers
select
    path, kind, version, paused, since, planned_at, due_at, last_at,
    last_execution_id, skipped_at, skipped_why, waits_for
from noetl.trigger_state where path > $1 and kind <> 'ends' order by path limit $2

-- name: page_triggers_of
select
    path, kind, version, paused, since, planned_at, due_at, last_at,
    last_execution_id, skipped_at, skipped_why, waits_for
from noetl.trigger_state where kind = $1 and path > $2 order by path limit $3

-- name: take_triggers
-- Servers that look at once are given different rows.
with due as (
    select path from noetl.trigger_state
    where due_at <= $1 and not paused and taken_until <= $1
    order by due_at limit $3 for update skip locked
)
update noetl.trigger_state as state set taken_until = $2
from due where state.path = due.path
returning
    state.path, state.kind, state.version, state.paused, state.since, state.planned_at,
    state.due_at, state.last_at, state.last_execution_id, state.skipped_at, state.skipped_why,
    state.waits_for

-- name: settle_trigger
update noetl.trigger_state set
    planned_at = $5, due_at = $6, last_at = $7, last_execution_id = $8, skipped_at = $9,
    skipped_why = $10, waits_for = $11, taken_until = 0
where path = $1 and version = $2 and since = $3 and planned_at is not distinct from $4
    and not paused

-- name: note_start
update noetl.trigger_state set last_at = $2, last_execution_id = $3 where path = $1

-- name: note_skip
update noetl.trigger_state set skipped_at = $2, skipped_why = $3 where path = $1

-- name: remove_trigger
delete from noetl.trigger_state where path = $1

-- name: ended_since
select execution_id, path, status, finished_at from noetl.execution
where finished_at >= $1 and (finished_at > $1 or execution_id > $2)
order by finished_at, execution_id limit $3

-- name: find_kept
select path, task, key, fingerprint, execution_id, kept_at, expires_at, size, outcome from noetl.cache_entry
where entry_id = $1 and expires_at > $2

-- name: keep_outcome
insert into noetl.cache_entry (
    entry_id, path, task, key, fingerprint, execution_id, kept_at, expires_at, size,
    outcome
) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
on conflict (entry_id) do update set execution_id = excluded.execution_id,
kept_at = excluded.kept_at, expires_at = excluded.expires_at,
size = excluded.size, outcome = excluded.outcome

-- name: refer_to_bodies
insert into noetl.body_use (used_by, source, since) values ($1, $2, $3)
on conflict (used_by, source) do update set since = excluded.since

-- name: page_kept
select path, task, key, fingerprint, execution_id, kept_at, expires_at, size from noetl.cache_entry
where ($1::text is null or path = $1) and ($2::text is null or task = $2) and ($3::text is null or key = $3)
and expires_at > $4
order by kept_at desc limit $5

-- name: clear_kept
delete from noetl.cache_entry
where ($1::text is null or path = $1) and ($2::text is null or task = $2) and ($3::text is null or key = $3)

-- name: expire_kept
delete from noetl.cache_entry where expires_at <= $1

-- name: free_bodies
-- Of entries that are gone or hold another outcome by now, and of executions that are gone.
delete from noetl.body_use where since <= $1 and not exists (
    select 1 from noetl.cache_entry as entry
    where entry.entry_id = substr(body_use.used_by, 1, 64)
    and body_use.used_by = entry.entry_id || '/' || entry.execution_id
) and not exists (
    select 1 from noetl.execution where execution.execution_id = body_use.used_by
)

-- name: needed_bodies
select distinct source from noetl.body_use

-- name: note_order
insert into noetl.audit (at, who, role, what, about, result, detail)
values ($1, $2, $3, $4, $5, $6, $7)

-- name: page_orders
select at, who, role, what, about, result, detail from noetl.audit
where ($1::bigint is null or at >= $1) and ($2::bigint is null or at < $2)
and ($3::text is null or who = $3) and ($4::text is null or what = $4)
order by at desc, number desc limit $5

-- name: put_pool
insert into noetl.pool (name, at_once, set_at) values ($1, $2, $3)
on conflict (name) do update set at_once = excluded.at_once, set_at = excluded.set_at

-- name: bind_waiting
update noetl.limit_claim set total = $2 where limit_group = $1 and granted_at is null

-- name: remove_pool
delete from noetl.pool where name = $1

-- name: all_pools
select name, at_once, set_at from noetl.pool order by name
