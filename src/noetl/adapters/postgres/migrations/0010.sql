-- Who ordered what. Nothing but inserts: a row stays as it was written.

create table noetl.audit (
    number bigint generated always as identity primary key,
    at bigint not null,
    who text not null,
    role text not null,
    what text not null,
    about text not null,
    result text not null,
    detail text not null
);

create index audit_at on noetl.audit (at);
