"""`noetl init`: a project to start from."""

import json
import re
from importlib import resources
from pathlib import Path

import click

from noetl.cli.output import examples, print_line
from noetl.cli.source import reason_of
from noetl.errors import UnwritableFile
from noetl.playbook.schema import json_schema

EPILOG = examples("init", "init reports")
FILES = {
    "playbook.yaml": "playbook.yaml",
    "playbook.test.yaml": "playbook.test.yaml",
    "README.md": "readme.txt",
    ".gitignore": "gitignore.txt",
    ".vscode/settings.json": "settings.json",
}
"""What is made → the file of this package that it is made from."""
SCHEMA = "playbook.schema.json"


@click.command(epilog=EPILOG)
@click.argument("folder", metavar="[FOLDER]", default=".", type=click.Path(readable=False))
def init(folder: str) -> None:
    """
    Create a project: a playbook that runs, its test, and editor settings.

    FOLDER is created if needed; existing files are never overwritten.
    """
    root = Path(folder)
    made = texts_of(name_for(root.resolve().name))
    there = [name for name in made if (root / name).exists() or (root / name).is_symlink()]
    if there:
        raise UnwritableFile(
            f"{root / there[0]} is there already, nothing was written; name another folder"
        )
    for name, text in made.items():
        write_new(root / name, text)
    where = "" if folder == "." else f"cd {folder}; "
    print_line(f"made {', '.join(made)}")
    print_line(f"next: {where}noetl run playbook.yaml", err=True)


def texts_of(name: str) -> dict[str, str]:
    """Every file of a new project, with its text."""
    samples = resources.files("noetl.cli").joinpath("project")
    texts = {
        made: samples.joinpath(sample).read_text("utf-8").replace("{name}", name)
        for made, sample in FILES.items()
    }
    # The same on every machine: kinds of plugins would differ.
    return {**texts, SCHEMA: json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"}


def name_for(folder: str) -> str:
    """The name of the folder as the path of a playbook."""
    return re.sub(r"[^a-z0-9_-]+", "-", folder.lower()).strip("-") or "playbook"


def write_new(file: Path, text: str) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("x", encoding="utf-8") as made:
            made.write(text)
    except FileExistsError:
        raise UnwritableFile(f"'{file}' is there already; it stays as it is") from None
    except OSError as wrong:
        raise UnwritableFile(f"cannot write '{file}': {reason_of(wrong)}") from None
