-- Retention asks which executions a restart refers to (RST-3).

create index execution_origin on noetl.execution (origin_execution_id)
where origin_execution_id is not null;
