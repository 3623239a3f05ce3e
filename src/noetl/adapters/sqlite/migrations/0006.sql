-- Where an execution stands, and since when, is read from its last decision: one that changes nothing
-- else writes no row of `execution` any more. `seq` and `updated_at` there are as of the last change of
-- the row; this view has them as they are now.

create view execution_row as
select
    number, execution_id, path, digest, status, started_at,
    coalesce(
        (
            select at from decision
            where decision.execution_id = execution.execution_id and first_seq > execution.seq
            order by first_seq desc limit 1
        ),
        updated_at
    ) as updated_at,
    version, finished_at, parent_execution_id, owner, error, limit_key, priority, queued_at,
    wake_at, origin_execution_id, origin_seq,
    coalesce(
        (
            select last_seq from decision
            where decision.execution_id = execution.execution_id and first_seq > execution.seq
            order by first_seq desc limit 1
        ),
        seq
    ) as seq
from execution;
