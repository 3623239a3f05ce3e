"""What is said about installing is true: the name, the extras, the size."""

import re
import tomllib

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from tests.house.markdown import prose_of
from tests.house.size import MOST, sizes
from tests.house.tree import ROOT, name_of, texts

from noetl.extras import DISTRIBUTION

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
ROW = re.compile(r"\| `([a-z0-9]+)` \| .* \| ([a-z0-9, -]+) \|")
OTHER_PROGRAM = re.compile(r"\bnoetl\[[a-zA-Z{]|install (?:-\S+ )*'?noetl(?![-\w./])")
"""What would fetch the program that has our name on the index."""


def test_the_distribution_has_one_name() -> None:
    assert PROJECT["name"] == DISTRIBUTION


def test_nothing_tells_people_to_install_another_program() -> None:
    found = [
        f"{name_of(path)}:{number}"
        for path in texts()
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if OTHER_PROGRAM.search(line)
    ]
    assert found == []


def test_the_page_lists_every_extra_with_its_packages() -> None:
    page = prose_of(ROOT / "docs" / "operate" / "install.md")
    rows = [match for line in page if (match := ROW.fullmatch(line))]
    listed = {row[1]: set(row[2].split(", ")) for row in rows}
    assert listed == {
        extra: {canonicalize_name(Requirement(text).name) for text in wanted} - {DISTRIBUTION}
        for extra, wanted in PROJECT["optional-dependencies"].items()
    }


def test_the_core_is_small() -> None:
    found = sizes()
    assert not found.keys() & {"duckdb", "psycopg", "asyncpg", "litestar", "faker"}
    assert sum(found.values()) < MOST, found


def test_make_run_installs_what_running_needs_and_make_test_the_rest() -> None:
    rules = dict(
        re.findall(
            r"^(\S+): ([^#\n]*)(?:##.*)?$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE
        )
    )
    assert rules["run"].split() == [".venv/core"]
    made = (ROOT / "Makefile").read_text("utf-8").partition("\n.venv/core:")[2].partition("\n\n")[0]
    assert "-r requirements.lock" not in made, "that is everything"
    assert rules["setup"].split() == [".venv/ready"]
    assert "setup" in rules["unit"].split()
    assert "setup" in rules["test"].split()
