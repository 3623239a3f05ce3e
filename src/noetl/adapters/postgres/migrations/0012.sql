-- An execution that is queued is kept here alone, and no server's memory holds it: `queued_at` says
-- since when. Nobody adopts it. With a place under its limit, without its claim, or with a note for
-- it, it is one that nobody owns, and whoever looks for those finds it: in the same commit, so that
-- no death in between forgets it (LIMIT-3).

drop index noetl.execution_free;
create index execution_free on noetl.execution (number)
where finished_at is null and owner is null and queued_at is null;

create function noetl.unpark() returns trigger
language plpgsql volatile as $$
begin
    update noetl.execution set queued_at = null
    where execution_id = coalesce(new.execution_id, old.execution_id) and queued_at is not null;
    return null;
end
$$;

create trigger place_ends_parking after update of granted_at on noetl.limit_claim
for each row when (new.holder = '' and new.granted_at is not null)
execute function noetl.unpark();

create trigger withdrawal_ends_parking after delete on noetl.limit_claim
for each row when (old.holder = '' and old.granted_at is null)
execute function noetl.unpark();

create trigger note_ends_parking after insert on noetl.note
for each row execute function noetl.unpark();
