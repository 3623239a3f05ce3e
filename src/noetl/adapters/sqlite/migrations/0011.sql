-- Who ordered what. Nothing but inserts: a row stays as it was written.

create table audit (
    number integer primary key autoincrement,
    at integer not null,
    who text not null,
    role text not null,
    what text not null,
    about text not null,
    result text not null,
    detail text not null
);

create index audit_at on audit (at);
