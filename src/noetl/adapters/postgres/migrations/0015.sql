-- The limits under which some starts that bring their claims may begin, with the commit that this is
-- part of: nobody waits there, and there is room for all of them. Each such limit is locked until the
-- commit, so that nobody else counts meanwhile. It is not waited for: whoever has it may wait for a
-- row of this transaction, and a start that finds it locked asks for its place as usual.
create function noetl.limit_room(
    groups text[], keys text[], wanted integer[], most integer[], in_all integer[]
) returns setof text
language plpgsql volatile as $$
declare
    one text;
begin
    for one in select distinct name from unnest(groups) as named (name) order by 1
    loop
        continue when not pg_try_advisory_xact_lock(hashtextextended(one, 7838170313));
        if not exists (
            select from noetl.limit_claim where limit_group = one and granted_at is null
        ) and not exists (
            select from unnest(groups, keys, wanted, most, in_all)
                as want (name, key, starts, most, in_all)
            where want.name = one and (
                want.most is not null and want.starts + (
                    select count(*) from noetl.limit_claim
                    where limit_group = one and limit_key = want.key and granted_at is not null
                ) > want.most
                or want.in_all is not null and (
                    select sum(every.starts) from unnest(groups, wanted) as every (name, starts)
                    where every.name = one
                ) + (
                    select count(*) from noetl.limit_claim
                    where limit_group = one and granted_at is not null
                ) > want.in_all
            )
        ) then
            return next one;
        end if;
    end loop;
end
$$;
