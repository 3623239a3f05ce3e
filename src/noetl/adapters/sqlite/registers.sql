-- The statements of the catalog, of keys, tokens and credentials, and of the roster.

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
from catalog where path = ? order by version desc limit 1

-- name: find_playbook
select
    path, version, digest, registered_at, name, description, labels, original_digest, version_label
from catalog where path = ? and version = ?

-- name: labelled_playbooks
select
    path, version, digest, registered_at, name, description, labels, original_digest, version_label
from catalog where path = ? and version_label = ? order by version desc

-- name: page_catalog
-- From path to path by steps through the index: older versions are not read.
with recursive paths (path, place) as (
    select min(path), 1 from catalog where path > ?1
    union all
    select (select min(catalog.path) from catalog where catalog.path > paths.path), place + 1
    from paths where paths.path is not null and place < ?2
)
select
    catalog.path, version, digest, registered_at, name, description, labels, original_digest,
    version_label
from paths join catalog on catalog.path = paths.path
    and version = (select max(newest.version) from catalog as newest where newest.path = paths.path)
order by place limit ?2

-- name: page_versions
select
    path, version, digest, registered_at, name, description, labels, original_digest, version_label
from catalog where path = ?1 and version < ifnull(?2, 9223372036854775807)
order by version desc limit ?3

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
