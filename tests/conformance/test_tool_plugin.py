"""TOOL: new kinds are Python entry points; the example package installs and runs."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from tests.house.tree import ROOT

PLUGIN = ROOT / "examples" / "plugin"
NOETL = Path(sys.executable).with_name("noetl")


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which the example was installed, out of a copy of its own folder."""
    folder = tmp_path_factory.mktemp("plugin")
    source, target = folder / "source", folder / "packages"
    shutil.copytree(PLUGIN, source)
    uv = shutil.which("uv", path=f"{NOETL.parent}:{os.environ['PATH']}")
    assert uv is not None, "`make setup` installs uv"
    words = ("--quiet", "--offline", "--no-deps", "--no-build-isolation", "--no-index")
    python = ("--python", sys.executable, "--target", str(target))
    subprocess.run([uv, "pip", "install", *words, *python, str(source)], check=True)
    return target


def noetl(home: Path, *words: str, packages: Path | None) -> subprocess.CompletedProcess[bytes]:
    path = {} if packages is None else {"PYTHONPATH": str(packages)}
    environment = {**os.environ, "NOETL_HOME": str(home), **path}
    return subprocess.run(
        [NOETL, *words], capture_output=True, check=False, env=environment, timeout=600
    )


@pytest.mark.unproven  # here the plugin is not installed; the program itself verifies below
@pytest.mark.rule("TOOL-0")
def test_the_example_installs_and_runs(packages: Path, tmp_path: Path) -> None:
    done = noetl(tmp_path, "run", str(PLUGIN / "slugs.yaml"), "--json", packages=packages)
    assert done.returncode == 0, done.stderr.decode()
    report = msgspec.json.decode(done.stdout)
    slugs = [{"slug": "creme-brulee-twice"}, {"slug": "10-days-in-koln"}, {"slug": "untitled"}]
    assert (report["status"], report["result"]) == ("completed", slugs)
    verified = noetl(tmp_path, "replay", report["execution_id"], "--verify", packages=packages)
    assert verified.returncode == 0, verified.stdout.decode()


@pytest.mark.rule("TOOL-0")
def test_the_schema_and_validation_know_it(packages: Path, tmp_path: Path) -> None:
    schema = noetl(tmp_path, "schema", packages=packages)
    assert b'"slugify"' in schema.stdout
    valid = noetl(tmp_path, "validate", str(PLUGIN / "slugs.yaml"), packages=packages)
    assert (valid.returncode, valid.stderr) == (0, b"")


@pytest.mark.rule("TOOL-0")
def test_without_the_package_the_kind_is_unknown(tmp_path: Path) -> None:
    done = noetl(tmp_path, "validate", str(PLUGIN / "slugs.yaml"), packages=None)
    assert done.returncode == 2
    assert b"no tool kind is called 'slugify'" in done.stdout


@pytest.mark.rule("TOOL-0")
def test_a_broken_package_is_named_and_stops_no_other(packages: Path, tmp_path: Path) -> None:
    broken = tmp_path / "packages"
    shutil.copytree(packages, broken)
    (broken / "noetl_slugify" / "tool.py").write_text("import no_such_module")
    asked = noetl(tmp_path, "validate", str(PLUGIN / "slugs.yaml"), packages=broken)
    assert asked.returncode == 2
    assert b"the plugin noetl-slugify 0.1.0 cannot be loaded: ModuleNotFoundError" in asked.stdout
    assert b"Traceback" not in asked.stdout + asked.stderr
    schema = noetl(tmp_path, "schema", packages=broken)
    assert (schema.returncode, b'"http"' in schema.stdout) == (0, True)
    assert b"warning: without the kind 'slugify': the plugin noetl-slugify" in schema.stderr
    hello = str(ROOT / "examples" / "01-hello" / "playbook.yaml")
    assert noetl(tmp_path, "run", hello, packages=broken).returncode == 0
