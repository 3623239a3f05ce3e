-- What servers need: pages by any filter, take-over, the catalog, keys, tokens, and who is there.

create index execution_status on execution (status);
create index execution_path on execution (path);
create index execution_started on execution (started_at);
create index execution_finished on execution (finished_at) where finished_at is not null;
create index execution_parent on execution (parent_execution_id)
where parent_execution_id is not null;

-- Nearly always empty: what waits for somebody to go on with it.
create index execution_free on execution (number) where finished_at is null and owner is null;

-- One row: the last term that was drawn.
create table term (last integer not null);
insert into term (last) values (0);

create table catalog (
    path text not null,
    version integer not null,
    digest text not null,
    registered_at integer not null,
    name text not null,
    description text,
    labels text not null,
    original_digest text,
    primary key (path, version)
) without rowid;

create table execution_key (
    key text primary key,
    fingerprint text not null,
    execution_id text not null,
    claimed_at integer not null
) without rowid;

create index execution_key_age on execution_key (claimed_at);

create table api_token (
    token_id text primary key,
    name text not null,
    role text not null,
    digest text not null unique,
    created_at integer not null,
    expires_at integer,
    revoked_at integer
) without rowid;

create table worker (
    name text primary key,
    pool text not null,
    slots integer not null,
    version text not null,
    host text not null,
    pid integer not null,
    started_at integer not null,
    seen_at integer not null,
    busy integer not null,
    server text
) without rowid;

create table server (
    name text primary key,
    address text not null,
    version text not null,
    started_at integer not null,
    seen_at integer not null
) without rowid;
