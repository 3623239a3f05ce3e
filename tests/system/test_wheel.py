"""The wheel of this checkout in an environment with the core's packages and no others."""

import json
import os
import re
import subprocess
import sys
import venv
import zipfile
from collections.abc import Callable
from importlib.metadata import distribution
from pathlib import Path

import pytest
from tests.house.markdown import blocks_of
from tests.house.packages import closure
from tests.house.tree import ROOT
from tests.system.program import HELLO, Answer
from tests.system.test_fleet_examples import SMALLER

from noetl.extras import DISTRIBUTION, EXTRAS

Program = Callable[..., Answer]
SHELL = (
    "import os, subprocess, sys; here = os.path.dirname(sys.executable); "
    "os.environ['PATH'] = here + ':' + os.environ['PATH']; "
    "sys.exit(subprocess.call(['sh', '-ec', sys.argv[1]]))"
)
EXAMPLES = sorted(path.parent for path in (ROOT / "examples").glob("*/playbook.yaml"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    words = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(words, cwd=ROOT, check=True, capture_output=True)
    [built] = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def program(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Program:
    """`noetl` as `pip install` of the wheel leaves it, without asking an index."""
    folder = tmp_path_factory.mktemp("fresh")
    venv.create(folder / "env", symlinks=True)
    [site] = (folder / "env" / "lib").glob("python*/site-packages")
    for name in closure().keys() - {DISTRIBUTION}:
        for file in distribution(name).files or ():
            if ".." not in file.parts:
                (site / file).parent.mkdir(parents=True, exist_ok=True)
                (site / file).symlink_to(str(file.locate()))
    python = folder / "env" / "bin" / "python"
    words = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
    subprocess.run([*words, "--no-index", "--no-deps", str(wheel)], check=True, capture_output=True)

    def run(*words: str | Path, by: str = "noetl", **environment: str) -> Answer:
        settings = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        done = subprocess.run(
            [python.with_name(by), *words],
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
            cwd=folder,
            env={**settings, "NOETL_HOME": str(folder / "home"), **environment},
        )
        assert "Traceback" not in done.stdout + done.stderr
        return Answer(done.returncode, done.stdout, done.stderr)

    return run


def test_it_is_the_distribution_and_brings_its_licence(wheel: Path) -> None:
    assert wheel.name.startswith(f"{DISTRIBUTION.replace('-', '_')}-")
    with zipfile.ZipFile(wheel) as inside:
        assert [name for name in inside.namelist() if name.endswith("licenses/LICENSE")]


def test_the_first_example_runs(program: Program) -> None:
    ran = program("run", HELLO)
    assert (ran.code, "Good morning, world!" in ran.out + ran.err) == (0, True), ran


@pytest.mark.parametrize("folder", EXAMPLES, ids=lambda folder: folder.name)
def test_an_example_runs_on_the_core_or_says_what_to_add(program: Program, folder: Path) -> None:
    """Where its page says that it needs something, the program says so too; never a traceback."""
    text = (folder / "playbook.yaml").read_text("utf-8")
    if (folder / "serve.py").exists():
        ran = program(ROOT / "examples" / "run.py", folder.name, by="python")
    else:
        fewer = (f"{name}={count}" for name, count in SMALLER.get(folder.name, {}).items())
        given = [word for one in fewer for word in ("--set", one)]
        ran = program("run", folder / "playbook.yaml", *given)
    ended = json.loads((folder / "expected.json").read_text("utf-8"))["status"]
    as_expected = ran.code == {"completed": 0, "failed": 1}[ended]
    if "# Needs:" in text:
        said = " ".join((ran.out + ran.err).split())
        assert as_expected or re.search(r"pip install|make setup|podman", said), ran
    else:
        assert as_expected, ran


def test_a_program_runs_it_too(program: Program) -> None:
    ran = program("-c", f"import noetl; print(noetl.run({str(HELLO)!r}).status)", by="python")
    assert (ran.code, ran.out, ran.err) == (0, "completed\n", "")


@pytest.mark.parametrize("words", [("--help",), ("--version",), ("list",), ("validate", HELLO)])
def test_commands_answer(program: Program, words: tuple[str, ...]) -> None:
    answer = program(*words)
    assert answer.code == 0, answer.err


def test_the_doctor_names_what_is_not_there_and_what_installs_it(
    program: Program, wheel: Path
) -> None:
    told = program("doctor")
    assert told.code == 0, told
    said = " ".join(told.out.split())
    assert f"installed: none; not: {', '.join(EXTRAS)} (" in said
    assert "pip install --python" in said or "-m pip install" in said
    assert f"'{DISTRIBUTION}[NAME] @ {wheel.as_uri()}'" in said


@pytest.mark.parametrize(
    ("words", "settings", "extra"),
    [
        (("server", "start"), {}, "server"),
        (("up",), {}, "server"),
        (("lsp",), {}, "editor"),
        (("mcp",), {}, "mcp"),
        (("run", ROOT / "examples" / "15-duckdb" / "playbook.yaml"), {}, "duckdb"),
        (("export", "--all", "--format", "parquet", "-o", "all.parquet"), {}, "duckdb"),
        (("server", "token", "list"), {"NOETL_DB": "postgresql://127.0.0.1/x"}, "postgres"),
        (("doctor",), {"NOETL_DB": "postgresql://127.0.0.1/x"}, "postgres"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else None,
)
def test_what_needs_an_extra_says_which(
    program: Program, words: tuple[str, ...], settings: dict[str, str], extra: str
) -> None:
    told = program(*words, **settings)
    assert told.code != 0
    said = " ".join((told.out + told.err).split())
    assert "needs an extra: install it with" in said
    assert f"'{DISTRIBUTION}[{extra}] @ file://" in said


def test_the_first_lines_of_the_readme_run_as_they_are(program: Program) -> None:
    first = next(block.text for block in blocks_of(ROOT / "README.md") if block.language == "sh")
    install, _, rest = first.partition("\n")
    assert install == "pip install ."  # which is what the environment stands for
    ran = program("-c", SHELL, rest, by="python")
    assert (ran.code, "completed" in ran.out) == (0, True), ran
