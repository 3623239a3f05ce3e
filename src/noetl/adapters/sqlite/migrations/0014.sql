-- Readers see `part`; the log keeps the key that releases before called it by (decision 0085).

drop view event;

create view event as
select
    single.execution_id || '.' || single.seq as event_id,
    single.seq as seq,
    single.execution_id as execution_id,
    strftime('%Y-%m-%dT%H:%M:%S', single.at / 1000, 'unixepoch')
        || printf('.%03dZ', single.at % 1000) as timestamp,
    case
        when single.name = 'loop.started'
            and json_extract(single.value, '$.parent_id') is not null then 'worker'
        when single.name in ('step.done', 'step.failed', 'loop.done')
            then coalesce(json_extract(single.value, '$.source'), about.source)
        else coalesce(about.source, 'server')
    end as source,
    single.name as name,
    coalesce(about.entity, 'workflow') as entity,
    coalesce(
        iif(about.id_field = '', null, json_extract(single.value, '$.' || about.id_field)),
        single.execution_id
    ) as entity_id,
    case
        when json_extract(single.value, '$.error') is not null then 'error'
        when single.name = 'task.done' and (
            json_extract(single.value, '$.outcome.status') = 'error'
            or json_extract(single.value, '$.do') = 'fail'
        ) then 'error'
        when single.name in ('workflow.finished', 'playbook.processed')
            and json_extract(single.value, '$.status') in ('failed', 'cancelled') then 'error'
        when single.name = 'policy.admit.evaluated'
            and not json_extract(single.value, '$.allow') then 'skipped'
        when single.name = 'lease.expired' and (
            json_extract(single.value, '$.returned') or json_extract(single.value, '$.uncounted')
        ) then 'in_progress'
        else coalesce(about.status, 'in_progress')
    end as status,
    json_extract(single.value, '$.step') as step,
    json_extract(single.value, '$.step_run_id') as step_run_id,
    json_extract(single.value, '$.task_run_id') as task_run_id,
    coalesce(
        (
            select json_extract(opening.events, '$[0].trace_id') from decision as opening
            where opening.execution_id = single.execution_id and opening.first_seq = 1
        ),
        single.execution_id
    ) as trace_id,
    case
        when json_extract(single.value, '$.parent_id') is not null
            then json_extract(single.value, '$.parent_id')
        when single.above like '%.%' then single.above
        when single.above is not null or json_extract(single.value, '$.iteration_id') is not null
            then json_extract(single.value, '$.step_run_id')
        else json_extract(single.value, '$.parent_step_run_id')
    end as parent_id,
    json_remove(
        case single.name
            when 'task.started' then json_insert(single.shown, '$.attempt', 1)
            when 'task.done'
                then json_insert(single.shown, '$.attempt', 1, '$.do', 'continue')
            else single.shown
        end,
        '$.name', '$.step', '$.step_run_id', '$.task_run_id', '$.trace_id', '$.parent_id',
        iif(single.name in ('step.done', 'step.failed', 'loop.done'), '$.source', '$.name')
    ) as data
from (
    select
        decision.execution_id as execution_id,
        decision.first_seq + element.key as seq,
        decision.at as at,
        element.value as value,
        iif(
            json_extract(element.value, '$.leg') is null,
            element.value,
            json_remove(
                json_insert(element.value, '$.part', json_extract(element.value, '$.leg')), '$.leg'
            )
        ) as shown,
        json_extract(element.value, '$.name') as name,
        -- EVT-0: `4.1` is a task of run `4.0`, `4.1.2` one of iteration `4.1`.
        rtrim(rtrim(json_extract(element.value, '$.task_run_id'), '0123456789'), '.') as above
    from decision, json_each(decision.events) as element
) as single
left join event_name as about on about.name = single.name;
