-- Every claim has its answer. One that ends while it is asked for, because its execution does, was
-- left out, and the answers of all that were asked for beside it were lost: it is told that it
-- waits, and whoever asked finds that there is nothing to wait for.

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
    select case
        when claim.granted_at is not null then 0::bigint
        when claim.execution_id is null then 1::bigint
        else (
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
    left join noetl.limit_claim as claim
        on claim.execution_id = wanted.value ->> 'execution_id'
        and claim.holder = wanted.value ->> 'holder'
    order by wanted.number;
end
$$;
