-- Kept outcomes (CACHE-1). `body_use` says whose bodies entries, and executions that took an outcome,
-- refer to: retention leaves them alone.

create table noetl.cache_entry (
    entry_id text collate "C" primary key,
    path text collate "C" not null,
    task text not null,
    key text not null,
    fingerprint text not null,
    execution_id text not null,
    kept_at bigint not null,
    expires_at bigint not null,
    size bigint not null,
    outcome bytea not null
);

create index cache_expiry on noetl.cache_entry (expires_at);
create index cache_path on noetl.cache_entry (path, kept_at);

create table noetl.body_use (
    used_by text collate "C" not null,
    source text collate "C" not null,
    since bigint not null,
    primary key (used_by, source)
);

create index body_source on noetl.body_use (source);
