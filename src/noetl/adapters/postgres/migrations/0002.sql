-- What servers need: pages by any filter, take-over, the catalog, keys, tokens, and who is there.

create index execution_started on noetl.execution (started_at, number);
create index execution_finished on noetl.execution (finished_at) where finished_at is not null;
create index execution_parent on noetl.execution (parent_execution_id, number)
where parent_execution_id is not null;

-- Nearly always empty: what waits for somebody to go on with it.
create index execution_free on noetl.execution (number)
where finished_at is null and owner is null;

-- The term of the last adoption: one whose answer was lost is known again by it.
alter table noetl.execution add column term bigint;

-- One row. Not a sequence: a number drawn from that is durable only with the next commit.
create table noetl.term (last bigint not null) with (fillfactor = 10);
insert into noetl.term (last) values (0);

-- Every owner once, by steps through the index: as long as there are owners, not executions.
create view noetl.dead_owner as
with recursive named (owner) as (
    select min(owner) from noetl.execution
    union all
    select (select min(execution.owner) from noetl.execution where execution.owner > named.owner)
    from named where named.owner is not null
)
select owner from named
where owner is not null and not exists (
    select from noetl.process where process.token = named.owner and process.expires_at > now()
);

-- `mark` is drawn by whoever registers: saying it twice, for want of an answer, is still new.
create table noetl.catalog (
    path text collate "C" not null,
    version integer not null,
    digest text collate "C" not null,
    registered_at bigint not null,
    name text not null,
    description text,
    labels text not null,
    original_digest text collate "C",
    mark text collate "C" not null,
    primary key (path, version)
);

create table noetl.execution_key (
    key text collate "C" primary key,
    fingerprint text not null,
    execution_id text collate "C" not null,
    claimed_at bigint not null
);

create index execution_key_age on noetl.execution_key (claimed_at);

create table noetl.api_token (
    token_id text collate "C" primary key,
    name text not null,
    role text not null,
    digest text collate "C" not null unique,
    created_at bigint not null,
    expires_at bigint,
    revoked_at bigint
);

create table noetl.credential (
    name text collate "C" primary key,
    kind text not null,
    key_id text not null,
    sealed bytea not null,
    updated_at bigint not null
);

create table noetl.worker (
    name text collate "C" primary key,
    pool text not null,
    slots integer not null,
    version text not null,
    host text not null,
    pid bigint not null,
    started_at bigint not null,
    seen_at bigint not null,
    busy integer not null,
    server text
) with (fillfactor = 10);

create table noetl.server (
    name text collate "C" primary key,
    address text not null,
    version text not null,
    started_at bigint not null,
    seen_at bigint not null
) with (fillfactor = 10);
