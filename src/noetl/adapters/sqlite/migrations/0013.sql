-- An execution that is queued is kept here alone, and no server's memory holds it: `queued_at` says
-- since when. Nobody adopts it. With a place under its limit, without its claim, or with a note for
-- it, it is one that nobody owns, and whoever looks for those finds it: in the same commit, so that
-- no death in between forgets it (LIMIT-3).

drop index execution_free;
create index execution_free on execution (number)
where finished_at is null and owner is null and queued_at is null;

create trigger place_ends_parking after update of granted_at on limit_claim
when new.holder = '' and new.granted_at is not null
begin
    update execution set queued_at = null
    where execution_id = new.execution_id and queued_at is not null;
end;

create trigger withdrawal_ends_parking after delete on limit_claim
when old.holder = '' and old.granted_at is null
begin
    update execution set queued_at = null
    where execution_id = old.execution_id and queued_at is not null;
end;

create trigger note_ends_parking after insert on note
begin
    update execution set queued_at = null
    where execution_id = new.execution_id and queued_at is not null;
end;

-- Where the end of a long queue is found without reading it.

create index limit_order on limit_claim (limit_group, priority, turn, asked_at, execution_id)
where granted_at is null;
create index limit_last on limit_claim (limit_group, limit_key, turn) where granted_at is null;

-- Whether an execution waits for people, so that whoever asks for those reads no others. It takes the
-- place of a column that nothing ever filled. Of those that run now nobody knows: they are looked at.

alter table execution rename column priority to asks;
update execution set asks = 1 where finished_at is null;
create index execution_asks on execution (number) where asks is not null;
