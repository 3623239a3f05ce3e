"""
The passes of migration, in order: what the author wrote, put into canonical shapes; then one back
end for all dialects, which resolves writes, results and names (decision 0045).
"""

from typing import Final

from noetl.playbook.dialects import (
    again,
    case_state,
    case_steps,
    code_tasks,
    comments,
    credentials,
    cursors,
    eval_shapes,
    eval_vars,
    former_kinds,
    inputs,
    naming,
    public_shapes,
    public_tasks,
    retries,
    routes,
    shapes,
    workbook,
    writes,
)
from noetl.playbook.dialects.rewrite import Pass

# Every block in the shape that it has now; nothing is read by name yet.
SHAPES: Final[tuple[Pass, ...]] = (
    Pass("comments", "document", comments.remember),
    Pass("up-executor", "document", public_shapes.executor_words),
    Pass("case-path", "document", public_shapes.path_of_metadata),
    Pass("up-vars", "document", public_shapes.root_vars),
    Pass("up-workbook", "document", workbook.tasks_of_workbook),
    Pass("up-loop", "step", public_shapes.loop_words),
    Pass("case-loop", "step", public_shapes.knobs_of_loop),
    Pass("up-tool", "step", public_shapes.tool_as_list),
    Pass("eval-pipe", "step", eval_shapes.pipe_of_step),
    Pass("up-empty-step", "step", public_shapes.empty_step),
    Pass("up-input", "task", public_tasks.kind_of_task),
    Pass("up-input", "task", public_tasks.inputs_of_spec),
    Pass("up-input", "task", inputs.input_of_task),
    Pass("up-input", "task", public_tasks.words_of_task),
    Pass("up-input", "step", inputs.inputs_of_step),
    Pass("up-input", "task", public_tasks.settings_of_task),
    Pass("up-input", "step", public_tasks.storage_of_step),
    Pass("up-input", "task", credentials.auth_of_task),
    Pass("up-auth", "task", credentials.secrets_of_headers),
    Pass("up-input", "step", former_kinds.transfers_of_step),
    Pass("up-input", "task", former_kinds.objects_of_artifacts),
    Pass("up-input", "task", former_kinds.kinds_that_are_none),
    Pass("up-retry", "task", retries.retry_of_task),
    Pass("up-workbook", "document", workbook.lent_tasks),
    Pass("up-workbook", "document", workbook.asserts_of_workbook),
    Pass("eval-defaults", "document", eval_shapes.defaults_of_executor),
    Pass("eval-step-when", "step", eval_shapes.guard_of_step),
    Pass("eval-rules", "task", eval_shapes.rules_of_eval),
    Pass("eval-rule-shape", "rule", shapes.shape_rule),
    Pass("eval-no-match", "task", eval_shapes.default_of_eval),
    Pass("eval-backoff", "rule", eval_shapes.backoff_of_rule),
    Pass("up-loop", "step", cursors.loops_over_cursors),
)

# Values go where they are read or written, with the words that the place had for them.
PLACES: Final[tuple[Pass, ...]] = (
    Pass("case-results", "document", case_state.results_by_name),
    Pass("case-workbook", "document", case_steps.sinks_of_workbook),
    Pass("up-python", "task", code_tasks.imports_of_libs),
    Pass("up-python", "task", code_tasks.all_inputs),
    Pass("up-python", "task", code_tasks.everything),
    Pass("up-python", "task", code_tasks.top_level_return),
    Pass("case-empty", "task", public_tasks.empty_inputs),
    Pass("case-retry", "step", retries.retry_of_step),
    Pass("case-loop", "step", case_steps.loop_as_task),
    Pass("up-set", "rule", writes.set_of_rule),
    Pass("up-set", "task", writes.set_of_task),
    Pass("up-set", "step", writes.set_of_step),
    Pass("up-set", "step", writes.set_of_arcs),
    Pass("case-vars", "step", case_state.vars_of_step),
    Pass("case-results", "step", case_state.keep_result),
    Pass("case-routes", "step", case_steps.cases_of_step),
    Pass("case-sink", "step", case_steps.sink_of_step),
    Pass("eval-next", "step", routes.router_of_next),
    Pass("up-no-match", "step", public_shapes.no_match),
    Pass("eval-vars", "step", eval_vars.move_vars),
    Pass("up-loop", "document", again.loops_with_lists),
)

# Names are read once, when everything stands where it stays.
NAMES: Final[tuple[Pass, ...]] = (
    Pass("up-name", "document", naming.name_everything),
    Pass("eval-rule-shape", "rule", shapes.settle_then),
    Pass("up-python", "task", code_tasks.quiet_comments),
    Pass("comments", "document", comments.restore),
)

PASSES: Final = (*SHAPES, *PLACES, *NAMES)
