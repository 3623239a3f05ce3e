"""Forms that public playbooks use and no document of the language has (DIA-UP)."""

from typing import Final

from noetl.playbook.dialects import (
    upstream_inputs,
    upstream_names,
    upstream_python,
    upstream_sets,
    upstream_shapes,
    upstream_tasks,
    upstream_words,
)
from noetl.playbook.dialects.rewrite import Rewriting

_INPUTS: Final = "Inputs stand beside `kind`, by the names that the kind gives them."
_SET: Final = "A rule of the task writes, before its directive takes effect."
_CODE: Final = "Code gets its args as names, and gives `result` or what `main` returns."
_RESULT: Final = "A step keeps its result in `ctx` where others read it; a task, in `iter`."

TABLE: Final[tuple[Rewriting, ...]] = (
    Rewriting(
        "up-executor",
        "document",
        upstream_shapes.executor_words,
        "Every runtime takes every playbook.",
    ),
    Rewriting(
        "up-workbook", "document", upstream_shapes.workbook_tasks, "The workbook has tasks by name."
    ),
    Rewriting(
        "up-loop", "step", upstream_shapes.loop_words, "A loop has a collection and an iterator."
    ),
    Rewriting(
        "up-tool", "step", upstream_shapes.tool_as_list, "A pipeline is a list of labelled tasks."
    ),
    Rewriting(
        "up-empty-step", "step", upstream_shapes.empty_step, "A step has a tool or a router."
    ),
    Rewriting("up-input", "task", upstream_tasks.kind_of_task, _INPUTS),
    Rewriting("up-input", "task", upstream_tasks.inputs_of_spec, _INPUTS),
    Rewriting("up-input", "task", upstream_inputs.input_of_task, _INPUTS),
    Rewriting("up-input", "task", upstream_tasks.words_of_task, _INPUTS),
    Rewriting("up-input", "step", upstream_inputs.input_of_step, _INPUTS),
    Rewriting("up-input", "task", upstream_tasks.settings_of_task, _INPUTS),
    Rewriting("up-retry", "task", upstream_tasks.retry_of_task, "A rule says what is retried."),
    Rewriting(
        "up-workbook", "document", upstream_inputs.lent_tasks, "The workbook has tasks by name."
    ),
    Rewriting(
        "up-rule-shape", "rule", upstream_sets.else_of_rule, "A rule is a guard and its directive."
    ),
    Rewriting(
        "up-output", "document", upstream_names.output_names, "A task's answer is `outcome`."
    ),
    Rewriting("up-set", "rule", upstream_sets.set_of_rule, _SET),
    Rewriting("up-set", "task", upstream_sets.set_of_task, _SET),
    Rewriting("up-set", "step", upstream_sets.set_of_step, _SET),
    Rewriting("up-set", "step", upstream_sets.set_of_arcs, _SET),
    Rewriting(
        "up-output", "document", upstream_names.output_names, "A task's answer is `outcome`."
    ),
    Rewriting("up-python", "task", upstream_python.imports_of_libs, _CODE),
    Rewriting("up-python", "task", upstream_python.all_inputs, _CODE),
    Rewriting("up-python", "task", upstream_python.everything, _CODE),
    Rewriting("up-python", "task", upstream_python.top_level_return, _CODE),
    Rewriting("up-result", "document", upstream_names.result_names, _RESULT),
    Rewriting(
        "up-event", "step", upstream_words.event_names, "A run of a step ends in one of its events."
    ),
    Rewriting(
        "up-no-match", "step", upstream_shapes.no_match, "Where no arc matches, the branch ends."
    ),
    Rewriting("up-name", "document", upstream_words.plain_names, "The name has changed."),
    Rewriting("up-name", "document", upstream_words.bare_names, "Names are read with their scope."),
)
