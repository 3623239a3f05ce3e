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

-- Where the end of a long queue is found without reading it.

create index limit_order on noetl.limit_claim (limit_group, priority, turn, asked_at, execution_id)
where granted_at is null;
create index limit_last on noetl.limit_claim (limit_group, limit_key, turn) where granted_at is null;

-- As before, but a place is counted up to a thousand: whoever starts something does not wait for a
-- long queue to be counted.
create or replace function noetl.limit_take(given json) returns table (place bigint)
language plpgsql volatile as $$
declare
    one text;
    made bigint;
begin
    perform set_config('synchronous_commit', 'off', true);
    for one in
        select distinct value ->> 'group' from json_array_elements(given) order by 1
    loop
        perform pg_advisory_xact_lock(hashtextextended(one, 7838170313));
    end loop;
    -- As nearly always: nobody waits, and there is room for all.
    if not exists (
        select from (
            select
                claim."group", claim.key, count(*) as wanted, min(claim.at_once) as most,
                min(claim.total) as in_all, count(claim.count) as counted
            from noetl.limit_asked(given) as claim
            group by claim."group", claim.key
        ) as want
        where want.counted > 0
            or exists (
                select from noetl.limit_claim
                where limit_group = want."group" and granted_at is null
            )
            or want.wanted + (
                select count(*) from noetl.limit_claim
                where limit_group = want."group" and limit_key = want.key
                    and granted_at is not null
            ) > want.most
            or json_array_length(given) + (
                select count(*) from noetl.limit_claim
                where limit_group = want."group" and granted_at is not null
            ) > want.in_all
    ) then
        insert into noetl.limit_claim (
            execution_id, holder, limit_group, limit_key, at_once, total, count, seconds,
            priority, turn, asked_at, granted_at, process
        )
        select
            claim.execution_id, claim.holder, claim."group", claim.key, claim.at_once,
            claim.total, claim.count, claim.seconds, claim.priority, 0, noetl.now_ms(),
            noetl.now_ms(), claim.process
        from noetl.limit_asked(given) as claim
        on conflict do nothing;
        get diagnostics made = row_count;
        if made = json_array_length(given) then
            return query select 0::bigint from generate_series(1, made);
            return;
        end if;
    else
        perform noetl.limit_queue(claim) from noetl.limit_asked(given) as claim;
        for one in
            select distinct value ->> 'group' from json_array_elements(given) order by 1
        loop
            perform noetl.limit_grant(one);
        end loop;
    end if;
    return query
    select case when claim.granted_at is not null then 0::bigint else (
        select 1 + count(*) from (
            (
                select from noetl.limit_claim as other
                where other.limit_group = claim.limit_group and other.granted_at is null
                    and other.priority > claim.priority
                limit 1000
            )
            union all
            (
                select from noetl.limit_claim as other
                where other.limit_group = claim.limit_group and other.granted_at is null
                    and other.priority = claim.priority
                    and (other.turn, other.asked_at, other.execution_id)
                        < (claim.turn, claim.asked_at, claim.execution_id)
                limit 1000
            )
            limit 1000
        ) as before
    ) end
    from json_array_elements(given) with ordinality as wanted (value, number)
    join noetl.limit_claim as claim
        on claim.execution_id = wanted.value ->> 'execution_id'
        and claim.holder = wanted.value ->> 'holder'
    order by wanted.number;
end
$$;

-- Whether an execution waits for people, so that whoever asks for those reads no others. It takes the
-- place of a column that nothing ever filled. Of those that run now nobody knows: they are looked at.

alter table noetl.execution rename column priority to asks;
update noetl.execution set asks = 1 where finished_at is null;
create index execution_asks on noetl.execution (number) where asks is not null;
