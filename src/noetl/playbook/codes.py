"""Which findings exist: the table of all codes, with severity and meaning (VAL)."""

import msgspec

from noetl.playbook.finding import Severity


class Code(msgspec.Struct, frozen=True):
    """What one code stands for."""

    severity: Severity
    meaning: str
    rule: str


def _errors(rule: str, **meanings: str) -> dict[str, Code]:
    return {
        name.replace("_", "-"): Code("error", meaning, rule) for name, meaning in meanings.items()
    }


def _warnings(rule: str, **meanings: str) -> dict[str, Code]:
    return {
        name.replace("_", "-"): Code("warning", meaning, rule) for name, meaning in meanings.items()
    }


CODES: dict[str, Code] = {
    **_errors(
        "DOC-7",
        empty_document="The file holds no document.",
        too_large="The text is longer than 2 MiB.",
        not_utf8="The file is not text in UTF-8.",
        control_character="The text holds a character that YAML forbids, such as NUL.",
        yaml_syntax="The text is not YAML.",
        tab_indent="A tab is used where YAML allows only spaces.",
        several_documents="The file holds more than one document.",
        too_deep="Blocks are nested more than 100 deep.",
        too_many_nodes="The document has more than 200,000 values once aliases are expanded.",
        recursive_alias="An alias refers to a block that contains it.",
        unknown_tag="A value carries a tag that plain YAML does not define.",
        duplicate_key="A mapping has the same key twice.",
        merge_key="The merge key `<<` is not part of YAML 1.2.",
        key_not_text="A key is not text.",
        too_many_templates="The templates are too many, or too many of them broken, to check all.",
        number_range="A number cannot be held: infinite, not a number, or too long.",
    ),
    **_errors(
        "DOC-1",
        unknown_key="A block has a key that it does not know.",
        missing_key="A block lacks a key that it needs.",
        wrong_type="A value has the wrong type.",
        wrong_value="A value is not one of those allowed, or out of range.",
        test_file="The file holds tests of a playbook, no playbook.",
        root_vars="`vars` is used at the root.",
    ),
    **_errors(
        "VAL-1",
        duplicate_step="Two steps have the same name.",
        unknown_step="An arc leads to a step that does not exist.",
        loop_incomplete="A loop lacks `in` or `iterator`.",
        unknown_kind="No tool kind has this name.",
        step_when="A step has a `when` of its own.",
        policy_shape="A policy is not a mapping with `rules`.",
        empty_step="A step has neither `tool` nor `next`.",
    ),
    **_errors(
        "VAL-2",
        duplicate_label="Two tasks of one pipeline have the same label.",
        task_shape="An entry of a pipeline is not one `label: task`.",
        jump_target="A `jump` names no task of its own pipeline.",
        retry_attempts="A `retry` lacks `attempts` of 1 or more.",
        rule_shape="A rule has both or neither of `when` and `else`, or lacks `then`.",
        else_not_last="`else` is not the last rule.",
        template_syntax="A template does not parse.",
        guard_shape="A guard is neither a boolean nor one whole `{{ … }}`.",
        missing_input="A task lacks an input that its kind needs.",
        unknown_input="A task has an input that its kind does not know.",
        input_choice="A task needs exactly one input of a group.",
        retired_word="A word of an older dialect is used.",
    ),
    **_errors("DIA-S4", no_counterpart="What an older dialect says here has no counterpart."),
    **_errors("DOC-5", unknown_entry="`entry_step` names no step."),
    **_errors("LIMIT-1", empty_limit="A limit sets no bound."),
    **_errors("LIMIT-2", limit_over="The limit of a step does something else than queue."),
    **_errors("CACHE-1", secret_key="The key of a cache reads a secret."),
    **_warnings("CACHE-1", never_found="No other run has the key of a cache."),
    **_errors(
        "NEXT-6",
        unknown_final="`final_step` names no step.",
        arc_to_final="An arc leads to the final step.",
        final_next="The final step has a `next`.",
        final_entry="The final step is the entry step too.",
    ),
    **_errors(
        "NEXT-7",
        join_source="A join waits for a step that does not exist, or for one twice.",
        join_count="A join waits for more tokens than it has sources.",
        join_arc="An arc leads into a join from a step outside its `from`.",
    ),
    **_errors(
        "SCOPE-5", plain_name="A key of `set_ctx`, `set_iter` or `reduce` is not a plain name."
    ),
    **_errors("SCOPE-2", iterator_name="The name of an iterator is reserved or not a plain name."),
    **_errors("KEY-1", duplicate_credential="Two entries of `keychain` have the same name."),
    **_errors(
        "START-1",
        no_playbook="The document is a trigger where a playbook is wanted.",
        trigger_choice="A trigger needs exactly one key of a group.",
        trigger_path="The path of a trigger cannot be part of an address.",
        trigger_payload="A payload sets the key that says what started the execution.",
    ),
    **_warnings("START-6", trigger_circle="A trigger starts the playbook whose end it waits for."),
    **_errors("START-3", bad_schedule="A schedule cannot be read, or never fires."),
    **_errors(
        "TOOL-2",
        unknown_workbook_task="No workbook task has this name.",
        workbook_cycle="Workbook tasks call each other in a circle.",
    ),
    **_warnings("DIA-S4", changed_meaning="What an older dialect says here means less, or more."),
    **_warnings(
        "VAL-3",
        unreachable_step="No arc reaches the step.",
        impossible_event="A guard waits for an event that the step never ends in.",
        impossible_status="A template asks for a status that no outcome has.",
        admit_without_else="Admission rules have no `else`.",
        secret_literal="A literal looks like a secret.",
        code_template="Code is built by template where arguments or the environment would do.",
        sql_template="SQL is built by template where bind parameters would do.",
        join_unfed="A join waits for a step that has no arc to it.",
        join_exclusive="A join waits for several steps of which an exclusive router starts one.",
        unusual_method="An `http` task has a method that no standard knows.",
        retired_name="A template uses a name or value of an older dialect.",
    ),
    **_warnings(
        "VAL-6",
        ignored_key="A key is set where nothing reads it.",
        never_set="A template reads a part of `event` or `outcome` that is never set there.",
        falls_through="An error that no rule matches lets the pipeline go on.",
        missing_auth="A task has no credential to connect with.",
        unknown_credential_kind="No tool knows this kind of credential.",
        unknown_credential="`auth` names no entry of the keychain, and one is near.",
    ),
    **_errors(
        "VAL-8",
        code_syntax="Code is not Python that can be read.",
        sql_params="Placeholders of a statement and its `params` do not belong together.",
    ),
    **_warnings("VAL-8", code_name="Code reads a name that neither it nor its `args` define."),
    **_warnings(
        "VAL-7",
        undeclared_key="A request, a trigger or a task brings a key that the playbook never reads.",
        other_type="A value that is brought has another type than its default.",
        unknown_playbook="No playbook has this path, and one has a path that is near it.",
    ),
    **_errors("SCOPE-2", reserved_name="`set_iter` writes what a loop says about itself."),
    **_errors("SCOPE-6", reduced_twice="A loop reduces a key that the executor reduces already."),
    **_errors("WAIT-5", approval_shape="An approval has a key, a form or `roles` that do not fit."),
    **_warnings("WAIT-5", unknown_role="`roles` of an approval names no role that may answer."),
    **_warnings("SCOPE-6", racing_write="Branches that run at once read and write a ctx key."),
    **_errors("VAL-5", unknown_name="A template reads a name that nothing can define."),
    **_warnings(
        "VAL-5",
        unbound_name="A template reads a name that only a request can define.",
        covered_name="A template gives a default for, or tests, a name that nothing can define.",
    ),
}
