-- Claims on limits (LIMIT): what holds a place, and what waits for one. `turn` lets the keys of a
-- group take turns. What began under a limit on starts is remembered for as long as it counts.

create table noetl.limit_claim (
    execution_id text collate "C" not null,
    holder text collate "C" not null,
    limit_group text collate "C" not null,
    limit_key text collate "C" not null,
    at_once integer,
    total integer,
    count integer,
    seconds double precision not null,
    priority integer not null,
    turn bigint not null,
    asked_at bigint not null,
    granted_at bigint,
    process text collate "C" not null,
    primary key (execution_id, holder)
);

create index limit_waiting on noetl.limit_claim (
    limit_group, limit_key, priority desc, turn, asked_at, execution_id
) where granted_at is null;
create index limit_turn on noetl.limit_claim (limit_group, turn) where granted_at is null;
create index limit_held on noetl.limit_claim (limit_group, limit_key) where granted_at is not null;
create index limit_granted on noetl.limit_claim (granted_at) where granted_at is not null;

create table noetl.limit_begun (
    limit_group text collate "C" not null,
    limit_key text collate "C" not null,
    at bigint not null,
    until bigint not null
);

create index limit_counted on noetl.limit_begun (limit_group, limit_key, at);
create index limit_forgotten on noetl.limit_begun (until);

-- They stood on the execution's row for this, and nothing ever filled them.

drop index noetl.execution_queue;

create function noetl.now_ms() returns bigint
language sql volatile as $$ select (extract(epoch from clock_timestamp()) * 1000)::bigint $$;

-- Lets begin whatever may begin in a group. One at a time goes through a group: each statement
-- after the lock sees what was committed before it. Nothing is waited for: a commit that rests on
-- this one comes later in the journal, so it cannot survive without it.
create function noetl.limit_grant(asked text) returns setof noetl.limit_claim
language plpgsql volatile as $$
declare
    moment bigint;
    few bigint;
    next noetl.limit_claim;
begin
    perform set_config('synchronous_commit', 'off', true);
    perform pg_advisory_xact_lock(hashtextextended(asked, 7838170313));
    moment := noetl.now_ms();
    -- Where there is room for all of a few, as nearly always, all of them begin at once.
    select count(*) into few from (
        select from noetl.limit_claim where limit_group = asked and granted_at is null limit 201
    ) as first_ones;
    if few between 1 and 200 then
        return query
        update noetl.limit_claim set granted_at = moment
        where limit_group = asked and granted_at is null and not exists (
            select from (
                select
                    limit_key, count(*) as wanted, min(at_once) as most, min(total) as in_all,
                    count(limit_claim.count) as counted
                from noetl.limit_claim
                where limit_group = asked and granted_at is null
                group by limit_key
            ) as want
            where want.counted > 0
                or want.wanted + (
                    select count(*) from noetl.limit_claim as held
                    where held.limit_group = asked and held.limit_key = want.limit_key
                        and held.granted_at is not null
                ) > want.most
                or (
                    select count(*) from noetl.limit_claim as every
                    where every.limit_group = asked
                ) > want.in_all
        )
        returning limit_claim.*;
        if found then
            return;
        end if;
    end if;
    loop
        with recursive keys (key) as (
            select min(limit_key) from noetl.limit_claim
            where limit_group = asked and granted_at is null
            union all
            select (
                select min(limit_key) from noetl.limit_claim
                where limit_group = asked and granted_at is null and limit_key > keys.key
            )
            from keys where key is not null
        )
        select head.* into next
        from keys
        cross join lateral (
            select * from noetl.limit_claim
            where limit_group = asked and limit_key = keys.key and granted_at is null
            order by priority desc, turn, asked_at, execution_id limit 1
        ) as head
        where (head.at_once is null or head.at_once > (
                select count(*) from noetl.limit_claim as held
                where held.limit_group = asked and held.limit_key = head.limit_key
                    and held.granted_at is not null
            ))
            and (head.count is null or head.count > (
                select count(*) from noetl.limit_begun as begun
                where begun.limit_group = asked and begun.limit_key = head.limit_key
                    and begun.at > moment - head.seconds * 1000
            ))
            and (head.total is null or head.total > (
                select count(*) from noetl.limit_claim as held
                where held.limit_group = asked and held.granted_at is not null
            ))
        order by head.priority desc, head.turn, head.asked_at, head.execution_id limit 1;
        exit when not found;
        update noetl.limit_claim set granted_at = moment
        where execution_id = next.execution_id and holder = next.holder;
        if next.count is not null then
            insert into noetl.limit_begun (limit_group, limit_key, at, until)
            values (asked, next.limit_key, moment, moment + (next.seconds * 1000)::bigint);
        end if;
        next.granted_at := moment;
        return next next;
    end loop;
end
$$;

create type noetl.limit_wish as (
    execution_id text, holder text, "group" text, key text, at_once integer, total integer,
    count integer, seconds double precision, priority integer, process text
);

create function noetl.limit_asked(given json) returns setof noetl.limit_wish
language sql stable as $$ select * from json_populate_recordset(null::noetl.limit_wish, given) $$;

-- One claim at the end of its key's queue: the keys take turns.
create function noetl.limit_queue(asked noetl.limit_wish) returns void
language sql volatile as $$
    insert into noetl.limit_claim (
        execution_id, holder, limit_group, limit_key, at_once, total, count, seconds, priority,
        turn, asked_at, process
    )
    select
        asked.execution_id, asked.holder, asked."group", asked.key, asked.at_once, asked.total,
        asked.count, asked.seconds, asked.priority,
        greatest(
            (
                select coalesce(max(turn) + 1, 0) from noetl.limit_claim
                where limit_group = asked."group" and limit_key = asked.key
                    and granted_at is null
            ),
            (
                select coalesce(min(turn), 0) from noetl.limit_claim
                where limit_group = asked."group" and granted_at is null
            )
        ),
        noetl.now_ms(), asked.process
    on conflict do nothing
$$;

-- Makes claims, each with its turn, and lets begin what may. A claim that is there stays as it is.
create function noetl.limit_take(given json) returns table (place bigint)
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
        select 1 + count(*) from noetl.limit_claim as other
        where other.limit_group = claim.limit_group and other.granted_at is null
            and (-other.priority, other.turn, other.asked_at, other.execution_id)
                < (-claim.priority, claim.turn, claim.asked_at, claim.execution_id)
    ) end
    from json_array_elements(given) with ordinality as wanted (value, number)
    join noetl.limit_claim as claim
        on claim.execution_id = wanted.value ->> 'execution_id'
        and claim.holder = wanted.value ->> 'holder'
    order by wanted.number;
end
$$;
