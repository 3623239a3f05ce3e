"""
Writes the pages and samples that come from the code; test_reference.py compares them.

`python -m tests.house.reference` writes. A page is a function without arguments that gives its
text; a sample is the real output of the program, put between two marks of a page.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import click
from tests.conformance.matrix import read_families
from tests.house import api_page, events_page, navigation, ui_types
from tests.house.markdown import blocks_of
from tests.house.pictures import TOLERANT, first_playbook, live_tree, outputs, tolerated
from tests.house.tree import ROOT, name_of
from tests.house.typewords import input_rows, words_for

from noetl.cli.findings import render, summary
from noetl.cli.main import program
from noetl.cli.source import PlaybookSource
from noetl.cli.terminal import Paint
from noetl.kinds.kind import Kind
from noetl.kinds.table import KINDS
from noetl.playbook.blocks import BLOCKS, METADATA
from noetl.playbook.codes import CODES
from noetl.playbook.load import load
from noetl.playbook.shape import Block, Field
from noetl.playbook.trigger_blocks import TRIGGER_BLOCKS
from noetl.ports.link import PROTOCOL, SPEAKS
from noetl.settings import SETTINGS, Settings

NOTE = "Written by `make docs` from the code; do not edit.\n"
RULE_PAGE = "specification.md"
SAMPLE_WIDTH = 100


def link(rule: str) -> str:
    return f"[{rule}]({RULE_PAGE}#{rule.lower()})"


def cell(text: str) -> str:
    """Text that cannot break the row of a table."""
    return text.replace("|", "\\|").replace("\n", " ")


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, tuple("---" for _ in head), *(tuple(map(cell, row)) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def findings_page() -> str:
    parts = ["# Findings\n", NOTE, "Codes are stable: programs may rely on them.\n"]
    for severity, title in (("error", "Errors"), ("warning", "Warnings")):
        rows = [
            (f"`{name}`", code.meaning, link(code.rule))
            for name, code in sorted(CODES.items())
            if code.severity == severity
        ]
        parts += [f"## {title}\n", table(("code", "meaning", "rule"), rows)]
    return "\n".join(parts)


def keys_page() -> str:
    parts = [
        "# Keys\n",
        NOTE,
        "The keys of each block of a playbook. Any other key is an error, unless a block is open.",
        "Where a *template* is expected, you can write a plain value too.\n",
    ]
    for block in BLOCKS.values():
        parts.append(block_part(block))
    parts.append("# Keys of triggers\n")
    for block in TRIGGER_BLOCKS.values():
        if block is not METADATA:
            parts.append(block_part(block))
    return "\n".join(parts)


def block_part(block: Block) -> str:
    notes = [block.doc]
    if block.open:
        notes.append("The block is open.")
    if block.requires_any:
        names = " or ".join(f"`{name}`" for name in block.requires_any)
        notes.append(f"It needs {names}.")
    rows = [key_row(name, field) for name, field in block.fields.items()]
    head = ("key", "value", "default", "meaning", "rule")
    return f"## {block.name}\n\n{' '.join(notes)}\n\n{table(head, rows)}"


def key_row(name: str, field: Field) -> tuple[str, ...]:
    default = "*required*" if field.required else shown_default(field.default)
    return f"`{name}`", words_for(field.type), default, field.doc, link(field.rule)


def shown_default(value: object) -> str:
    if value is None:
        return ""
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def kinds_page() -> str:
    parts = [
        "# Kinds\n",
        NOTE,
        "What a task can call, and the inputs of each kind. Any input can be a template. See",
        f"{link('OUT-3')} for results and {link('TASK-2')} for policies.\n",
    ]
    return "\n".join([*parts, *(kind_part(kind) for kind in KINDS.values())])


def kind_part(kind: Kind) -> str:
    notes = [kind.summary]
    if kind.block:
        fields = f": {', '.join(f'`{name}`' for name in kind.tells)}" if kind.tells else ""
        notes.append(f"Its block of the outcome is `outcome.{kind.block}`{fields}.")
    notes += [f"Exactly one of {', '.join(f'`{n}`' for n in group)}." for group in kind.one_of]
    if kind.fault:
        notes.append(f"It cannot be used: {kind.fault}.")
    if kind.extra:
        notes.append(f"Needs the extra `{kind.extra}`.")
    if (ROOT / TOOL_PAGES / f"{kind.name}.md").exists():
        notes.append(f"[More about it](tools/{kind.name}.md).")
    return f"## {kind.name}\n\n{' '.join(notes)}\n\n{inputs_of(kind)}"


def inputs_of(kind: Kind) -> str:
    rows = input_rows(kind.inputs)
    return table(("input", "value", "default", "meaning"), rows) if rows else "No inputs.\n"


def cli_page() -> str:
    root = click.Context(
        program, info_name="noetl", terminal_width=SAMPLE_WIDTH, **program.context_settings
    )
    parts = ["# Command line\n", NOTE, block_of_help(root)]
    return "\n".join([*parts, *commands_below(root, program, "##")])


def commands_below(context: click.Context, group: click.Group, mark: str) -> Iterator[str]:
    """The help of every command of a group, and of those below it."""
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        below = click.Context(command, parent=context, info_name=name)
        yield f"{mark} {below.command_path}\n"
        yield block_of_help(below)
        if isinstance(command, click.Group):
            yield from commands_below(below, command, mark + "#")


def block_of_help(context: click.Context) -> str:
    text = "\n".join(line.rstrip() for line in context.get_help().splitlines())
    return f"```text\n{text}\n```\n"


SETTINGS_PAGE = "docs/operate/settings.md"
SETTINGS_MARK = re.compile(r"<!-- settings -->\n.*?<!-- end -->", re.DOTALL)


def with_settings(page: Path) -> str:
    rows = [
        (f"`{field}`", f"`NOETL_{field.upper()}`", default_of(field), in_folder(field), row.means)
        for field, row in SETTINGS.items()
    ]
    filled = table(("setting", "variable", "default", "folder", "means"), rows)
    return SETTINGS_MARK.sub(
        lambda _: f"<!-- settings -->\n{filled}<!-- end -->", page.read_text("utf-8")
    )


def in_folder(field: str) -> str:
    """What the `noetl.toml` of a folder can set (decision 0072)."""
    allowed = SETTINGS[field].folder
    if isinstance(allowed, tuple):
        return ", ".join(f"`{int(one) if isinstance(one, bool) else one}`" for one in allowed)
    return {"never": "", "any": "yes", "inside": "inside it"}[allowed]


def default_of(field: str) -> str:
    defaults = dict(zip(Settings.__struct_fields__[1:], Settings.__struct_defaults__, strict=True))
    if field == "home":
        return "`.noetl` in your home folder"
    value = defaults[field]
    shown = str(int(value)) if isinstance(value, bool) else value
    return "" if value is None else f"`{shown}`"


def protocol_page() -> str:
    """The life of a part between the planes, drawn from the table of `ports.link`."""
    arrows = [f"  {state} --> {then}: {cell(said)}" for state, said, then, _ in PROTOCOL]
    said = (
        "A *part* is what one worker owns at a time: a whole step run, or a range of a loop's"
        " iterations. This is its life cycle.\n",
        "Workers call, servers answer. A call carries reports, renewals of leases and free places;"
        " the answer carries verdicts, orders to stop and new parts. A lost message is sent"
        " again, and a duplicate changes nothing: reports are numbered per part and lease"
        " epoch. NATS wakes idle workers and carries calls; over HTTP workers poll the server;"
        " `noetl run` passes everything in memory.\n\nWorkers also ask: for the text of a"
        " playbook, for children of a task and their ends, for sealed credentials and log keys."
        " Every question names the lease that it is asked under, and only the server that decides"
        " for its execution answers it; any server answers which one that is"
        " ([decision 0050](../decisions/0050-a-token-of-workers-names-its-pool.md)). Over NATS"
        " calls, questions and answers are signed"
        " ([decision 0049](../decisions/0049-the-queue-is-not-trusted.md)).\n\nThe number of"
        f" this protocol is {SPEAKS}"
        " ([decision 0051](../decisions/0051-one-number-for-what-is-said.md)).\n",
    )
    drawn = "\n".join(["```mermaid", "stateDiagram-v2", *arrows, "```", ""])
    rows = table(("state", "what is said or happens", "next state", "who decides"), PROTOCOL)
    return "\n".join(["# Between servers and workers\n", NOTE, said[0], drawn, rows, said[1]])


def rules_of_the_editor() -> str:
    """Every rule in one sentence, for `noetl lsp`: the specification is no part of the package."""
    rules = (rule for family in read_families().values() for rule in family.rules)
    return json.dumps({rule.id: rule.says for rule in rules}, ensure_ascii=False, indent=1) + "\n"


PAGES: Mapping[str, Callable[[], str]] = {
    "src/noetl/playbook/editing/rules.json": rules_of_the_editor,
    "docs/reference/findings.md": findings_page,
    "docs/reference/keys.md": keys_page,
    "docs/reference/kinds.md": kinds_page,
    "docs/reference/cli.md": cli_page,
    "docs/reference/protocol.md": protocol_page,
    events_page.PAGE: lambda: events_page.page(NOTE, table),
    "docs/pictures/live-tree.svg": live_tree,
}


def verdict(name: str, text: str) -> str:
    """What `noetl validate` prints about a text, as it looks where there are no colours."""
    source = PlaybookSource(name, text.encode())
    findings = load(source.content).findings
    lines = [*render(source, findings, Paint(False), SAMPLE_WIDTH)]
    return "\n".join([*lines, summary(name, findings, Paint(False))])


def misspelt() -> str:
    """The first playbook of the README with an arc that leads nowhere."""
    return verdict("sales.yaml", first_playbook().replace("step: total\n          args", MISSPELT))


def faults() -> str:
    return verdict("faults.yaml", first_block("docs/learn/02-validation.md", "rejected"))


MISSPELT = "step: totl\n          args"
SAMPLES: Mapping[str, Callable[[], str]] = {
    "misspelt": misspelt,
    "faults": faults,
    "ran": lambda: outputs()["ran"],
    "explained": lambda: outputs()["explained"],
    "tolerated": lambda: tolerated()["tolerated"],
    "tolerated_explained": lambda: tolerated()["tolerated_explained"],
    "tolerated_again": lambda: tolerated()["tolerated_again"],
}
SAMPLE = re.compile(r"<!-- sample: (\w+) -->\n.*?<!-- end -->", re.DOTALL)
FOUND = ("README.md", "docs/learn/02-validation.md")
"""Pages whose samples show findings."""
SAMPLED = (*FOUND, TOLERANT)


TOOL_PAGES = "docs/reference/tools"
"""One page for each kind that has more to tell than its inputs; those are filled in."""
INPUTS = re.compile(r"<!-- inputs: (\w+) -->\n.*?<!-- end -->", re.DOTALL)


def with_inputs(page: Path) -> str:
    def fill(mark: re.Match[str]) -> str:
        return f"<!-- inputs: {mark[1]} -->\n{inputs_of(KINDS[mark[1]])}<!-- end -->"

    return INPUTS.sub(fill, page.read_text("utf-8"))


def first_block(page: str, words: str) -> str:
    blocks = (b for b in blocks_of(ROOT / page) if b.language == "yaml" and b.words == words)
    return next(blocks).text


def with_samples(page: Path) -> str:
    def fill(mark: re.Match[str]) -> str:
        name = mark[1]
        return f"<!-- sample: {name} -->\n```text\n{SAMPLES[name]()}\n```\n<!-- end -->"

    return SAMPLE.sub(fill, page.read_text("utf-8"))


def written() -> dict[str, str]:
    """Every file that comes from the code, with the text that it should have."""
    pages = {name: page() for name, page in PAGES.items()}
    tools = {f"{TOOL_PAGES}/{page.name}": with_inputs(page) for page in tool_pages()}
    settings = {SETTINGS_PAGE: with_settings(ROOT / SETTINGS_PAGE)}
    api = {api_page.PAGE: api_page.with_routes(ROOT / api_page.PAGE, table)}
    api[ui_types.PAGE] = ui_types.page()
    sampled = {name: with_samples(ROOT / name) for name in SAMPLED}
    return led_on(pages | tools | settings | api | sampled)


def led_on(texts: dict[str, str]) -> dict[str, str]:
    """The same, and all other pages, each with its last line."""
    for page, line in navigation.paths():
        text = texts.get(name_of(page)) or page.read_text("utf-8")
        texts[name_of(page)] = navigation.with_navigation(text, line)
    return texts


def tool_pages() -> list[Path]:
    return sorted(p for p in (ROOT / TOOL_PAGES).glob("*.md") if p.name != navigation.INDEX)


def main() -> None:
    for name, text in written().items():
        (ROOT / name).write_text(text, "utf-8")
        print(f"wrote {name}")


if __name__ == "__main__":
    main()
