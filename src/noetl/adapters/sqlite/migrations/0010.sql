-- Kept outcomes (CACHE-1). `body_use` says whose bodies entries, and executions that took an outcome,
-- refer to: retention leaves them alone.

create table cache_entry (
    entry_id text primary key,
    path text not null,
    task text not null,
    key text not null,
    fingerprint text not null,
    execution_id text not null,
    kept_at integer not null,
    expires_at integer not null,
    size integer not null,
    outcome blob not null
);

create index cache_expiry on cache_entry (expires_at);
create index cache_path on cache_entry (path, kept_at);

create table body_use (
    used_by text not null,
    source text not null,
    since integer not null,
    primary key (used_by, source)
) without rowid;

create index body_source on body_use (source);
