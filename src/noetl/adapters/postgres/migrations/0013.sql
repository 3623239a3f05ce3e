-- Readers see `part`; the log keeps the key that releases before called it by (decision 0085).

drop view noetl.event;

create view noetl.event as
select
    single.execution_id || '.' || single.seq as event_id,
    single.seq as seq,
    single.execution_id as execution_id,
    to_char(
        timestamp 'epoch' + single.at * interval '1 millisecond', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'
    ) as timestamp,
    case
        when single.name = 'loop.started' and single.value ->> 'parent_id' is not null then 'worker'
        when single.name in ('step.done', 'step.failed', 'loop.done')
            then coalesce(single.value ->> 'source', about.source)
        else coalesce(about.source, 'server')
    end as source,
    single.name as name,
    coalesce(about.entity, 'workflow') as entity,
    coalesce(single.value ->> nullif(about.id_field, ''), single.execution_id) as entity_id,
    case
        when single.value ->> 'error' is not null then 'error'
        when single.name = 'task.done' and (
            single.value #>> '{outcome,status}' = 'error' or single.value ->> 'do' = 'fail'
        ) then 'error'
        when single.name in ('workflow.finished', 'playbook.processed')
            and single.value ->> 'status' in ('failed', 'cancelled') then 'error'
        when single.name = 'policy.admit.evaluated'
            and single.value ->> 'allow' = 'false' then 'skipped'
        when single.name = 'lease.expired' and 'true' in (
            single.value ->> 'returned', single.value ->> 'uncounted'
        ) then 'in_progress'
        else coalesce(about.status, 'in_progress')
    end as status,
    single.value ->> 'step' as step,
    single.value ->> 'step_run_id' as step_run_id,
    single.value ->> 'task_run_id' as task_run_id,
    coalesce(
        (
            select noetl.readable(opening.events) -> 0 ->> 'trace_id'
            from noetl.decision as opening
            where opening.execution_id = single.execution_id and opening.first_seq = 1
        ),
        single.execution_id
    ) as trace_id,
    case
        when single.value ->> 'parent_id' is not null then single.value ->> 'parent_id'
        when single.above like '%.%' then single.above
        when single.above is not null or single.value ->> 'iteration_id' is not null
            then single.value ->> 'step_run_id'
        else single.value ->> 'parent_step_run_id'
    end as parent_id,
    (
        select coalesce(json_object_agg(field.key, field.value), '{}')
        from (
            select case told.key when 'leg' then 'part' else told.key end as key, told.value
            from json_each(single.value) as told
            union all
            select usual.key, usual.value
            from json_each(
                case single.name
                    when 'task.started' then '{"attempt": 1}'::json
                    when 'task.done' then '{"attempt": 1, "do": "continue"}'::json
                    else '{}'::json
                end
            ) as usual
            where single.value -> usual.key is null
        ) as field
        where field.key not in (
            'name', 'step', 'step_run_id', 'task_run_id', 'trace_id', 'parent_id'
        )
        and not (field.key = 'source' and single.name in ('step.done', 'step.failed', 'loop.done'))
    ) as data
from (
    select
        decision.execution_id as execution_id,
        decision.first_seq + element.place - 1 as seq,
        decision.at as at,
        element.value as value,
        element.value ->> 'name' as name,
        -- EVT-0: `4.1` is a task of run `4.0`, `4.1.2` one of iteration `4.1`.
        rtrim(rtrim(element.value ->> 'task_run_id', '0123456789'), '.') as above
    from noetl.decision
    cross join json_array_elements(noetl.readable(decision.events))
        with ordinality as element (value, place)
) as single
left join noetl.event_name as about on about.name = single.name;
