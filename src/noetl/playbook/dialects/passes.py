"""
The passes of migration, in order: what the author wrote, put into canonical shapes; then one back
end for all dialects, which resolves names, results and writes (decision 0044).
"""

from typing import Final

from noetl.playbook.dialects import (
    case_shapes,
    case_state,
    case_steps,
    code_tasks,
    comments,
    credentials,
    eval_shapes,
    eval_vars,
    former_kinds,
    naming,
    public_inputs,
    public_shapes,
    public_tasks,
    retries,
    routes,
    shapes,
    workbook,
    writes,
)
from noetl.playbook.dialects.rewrite import Rewriting

_INPUTS: Final = "Inputs stand beside `kind`, by the names that the kind gives them."
_AUTH: Final = "A task names the credential that it needs; templates never see secrets."
_SET: Final = "A rule of the task writes, before its directive takes effect."
_CODE: Final = "Code gets its args as names, and gives `result` or what `main` returns."
_WORKBOOK: Final = "The workbook has tasks by name."
_RULE: Final = "A rule is a guard and its directive."
_VARS: Final = "What outlives a step is in `ctx`."
_KEPT: Final = "A result that later steps read is kept in `ctx` below the step's name."
_SINK: Final = "A sink is an ordinary storage task."
_ROUTER: Final = "The router holds the arcs and their mode."
_MODE: Final = "The router owns the mode of its arcs."

# Every block in the shape that it has now; nothing is read by name yet.
SHAPES: Final = (
    Rewriting("comments", "document", comments.remember, "Comments stay."),
    Rewriting(
        "up-executor",
        "document",
        public_shapes.executor_words,
        "Every runtime takes every playbook.",
    ),
    Rewriting(
        "case-path", "document", case_shapes.path_of_metadata, "A playbook is found by its path."
    ),
    Rewriting("up-vars", "document", public_shapes.root_vars, "Inputs are the workload."),
    Rewriting("up-workbook", "document", workbook.tasks_of_workbook, _WORKBOOK),
    Rewriting(
        "up-loop", "step", public_shapes.loop_words, "A loop has a collection and an iterator."
    ),
    Rewriting(
        "case-loop", "step", case_shapes.knobs_of_loop, "The knobs of a loop are in its spec."
    ),
    Rewriting(
        "up-tool", "step", public_shapes.tool_as_list, "A pipeline is a list of labelled tasks."
    ),
    Rewriting(
        "eval-pipe", "step", eval_shapes.pipe_of_step, "The list of a step's tasks is its pipeline."
    ),
    Rewriting("up-empty-step", "step", public_shapes.empty_step, "A step has a tool or a router."),
    Rewriting("up-input", "task", public_tasks.kind_of_task, _INPUTS),
    Rewriting("up-input", "task", public_tasks.inputs_of_spec, _INPUTS),
    Rewriting("up-input", "task", public_inputs.input_of_task, _INPUTS),
    Rewriting("up-input", "task", public_tasks.words_of_task, _INPUTS),
    Rewriting("up-input", "step", public_inputs.input_of_step, _INPUTS),
    Rewriting("up-input", "task", public_tasks.settings_of_task, _INPUTS),
    Rewriting("up-input", "step", public_tasks.storage_of_step, _INPUTS),
    Rewriting("up-input", "task", credentials.auth_of_task, _INPUTS),
    Rewriting("up-auth", "task", credentials.secrets_of_headers, _AUTH),
    Rewriting("up-input", "step", former_kinds.transfers_of_step, _INPUTS),
    Rewriting("up-input", "task", former_kinds.kinds_that_are_none, _INPUTS),
    Rewriting("up-retry", "task", retries.retry_of_task, "A rule says what is retried."),
    Rewriting("up-workbook", "document", workbook.lent_tasks, _WORKBOOK),
    Rewriting("up-workbook", "document", workbook.asserts_of_workbook, _WORKBOOK),
    Rewriting("eval-defaults", "document", eval_shapes.defaults_of_executor, _MODE),
    Rewriting(
        "eval-step-when",
        "step",
        eval_shapes.guard_of_step,
        "Admission decides which tokens may fire a step; a refused token waits.",
    ),
    Rewriting(
        "eval-rules",
        "task",
        eval_shapes.rules_of_eval,
        "What an outcome means is the policy of the task.",
    ),
    Rewriting("eval-rule-shape", "rule", shapes.shape_rule, _RULE),
    Rewriting(
        "eval-no-match",
        "task",
        eval_shapes.default_of_eval,
        "Where no rule matches, a policy goes on; the eval dialect failed on an error.",
    ),
    Rewriting(
        "eval-backoff", "rule", eval_shapes.backoff_of_rule, "`none` keeps the delay constant."
    ),
)

# Values go where they are read or written, with the words that the place had for them.
PLACES: Final = (
    Rewriting("case-results", "document", case_state.results_by_name, _KEPT),
    Rewriting("case-workbook", "document", case_steps.sinks_of_workbook, _SINK),
    Rewriting(
        "case-args",
        "step",
        case_state.args_of_step,
        "Arguments belong to the task that takes them.",
    ),
    Rewriting("up-python", "task", code_tasks.imports_of_libs, _CODE),
    Rewriting("up-python", "task", code_tasks.all_inputs, _CODE),
    Rewriting("up-python", "task", code_tasks.everything, _CODE),
    Rewriting("up-python", "task", code_tasks.top_level_return, _CODE),
    Rewriting(
        "case-empty", "task", case_shapes.empty_inputs, "An input without a value is left out."
    ),
    Rewriting(
        "case-retry", "step", retries.retry_of_step, "When to run again is the policy of the task."
    ),
    Rewriting(
        "case-loop",
        "step",
        case_steps.loop_as_task,
        "What a loop came to is known to the step when the loop is one of its tasks.",
    ),
    Rewriting("up-set", "rule", writes.set_of_rule, _SET),
    Rewriting("up-set", "task", writes.set_of_task, _SET),
    Rewriting("up-set", "step", writes.set_of_step, _SET),
    Rewriting("up-set", "step", writes.set_of_arcs, _SET),
    Rewriting("case-vars", "step", case_state.vars_of_step, _VARS),
    Rewriting("case-results", "step", case_state.keep_result, _KEPT),
    Rewriting(
        "case-routes",
        "step",
        case_steps.cases_of_step,
        "Arcs say where a token goes; rules of the task say what an outcome means.",
    ),
    Rewriting("case-sink", "step", case_steps.sink_of_step, _SINK),
    Rewriting("case-next", "step", routes.route_next, _ROUTER),
    Rewriting("eval-next", "step", eval_shapes.router_of_list, _ROUTER),
    Rewriting(
        "up-no-match", "step", public_shapes.no_match, "Where no arc matches, the branch ends."
    ),
    Rewriting(
        "eval-vars",
        "step",
        eval_vars.move_vars,
        "`vars` of one step run is `iter` now; what outlives an iteration or is read by `next` is "
        "a key of `ctx`, and what iterations share is reduced by the loop.",
    ),
)

# Names are read once, when everything stands where it stays.
NAMES: Final = (
    Rewriting("up-name", "document", naming.name_everything, "Names are read with their scope."),
    Rewriting("eval-rule-shape", "rule", shapes.settle_then, _RULE),
    Rewriting("up-python", "task", code_tasks.quiet_comments, _CODE),
    Rewriting("comments", "document", comments.restore, "Comments stay."),
)

PASSES: Final = (*SHAPES, *PLACES, *NAMES)
