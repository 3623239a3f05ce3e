"""
The complete examples of the source documents run as written, character by character.

Each is kept in playbooks/sources as the document has it. REPAIRS says what was damaged, or left out
by its authors, and so does the specification.
"""

import json
from pathlib import Path
from typing import Any, Final

import psycopg
import pytest
from tests.conformance.cases import FOLDER
from tests.support.http_server import HttpServer
from tests.support.postgres import Database
from tests.support.scenario import Ran, error, ok, scenario
from tests.support.steps import noop, step
from tests.system.program import Answer, noetl

from noetl.playbook.dialects.migrate import migrate
from noetl.playbook.load import load, load_valid
from noetl.playbook.plan import make_plan

SOURCES: Final = FOLDER / "sources"
ROOT: Final = (SOURCES / "s0_1_2.yaml").read_text()
PAGES: Final = (SOURCES / "s0_13.yaml").read_text()
OLDER_PAGES: Final = (SOURCES / "s4_14.yaml").read_text()
ONBOARDING: Final = FOLDER / "older" / "case_dialect.yaml"
REPAIRS: Final = {
    "s0_1_2": ("...", "tool: [{ rest: { kind: noop } }]"),  # a step that is left to the reader
    "s4_14": ("attempts: 10[...]", "attempts: 10"),  # S4 §14, cut in the document
}
AROUND: Final = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: pages, path: sources/pages }
keychain:
  - { name: pg_k8s, kind: postgres_credential, provider: environment, key: SOURCES_PG }
workload:
  api_url: "http://localhost"
  endpoints: [ { path: /api/v1/users, page_size: 10 }, { path: /api/v1/orders, page_size: 10 } ]
workflow:
EXAMPLE
- step: validate_results
  tool: [ { check: { kind: noop } } ]
- step: cleanup
  tool: [ { remove: { kind: noop } } ]
"""
"""What a step of a document needs to be a playbook."""


@pytest.mark.rule("DOC-1", "TASK-1")
@pytest.mark.parametrize("name", ["s0_1_2", "s0_13"])
def test_of_s0_nothing_but_the_indentation_was_repaired(name: str) -> None:
    written = (SOURCES / f"{name}.txt").read_text()
    damaged, repaired = REPAIRS.get(name, ("no such line", ""))
    lines = [line.strip() for line in (SOURCES / f"{name}.yaml").read_text().splitlines()]
    assert lines == [repaired if line == damaged else line for line in written.splitlines()]


def whole(example: str) -> str:
    """The playbook around a step, translated where it is of an older dialect."""
    made = migrate(AROUND.replace("EXAMPLE", example.replace(*REPAIRS["s4_14"])))
    assert made.complete, made.findings
    return made.text


def page(number: int, more: bool) -> Any:
    paging = {"hasMore": more, "page": number}
    return ok({"status": 200, "headers": {}, "data": {"paging": paging, "data": [number]}})


def answered(text: str, **answers: Any) -> Ran:
    made = scenario(step("start", noop("x")))
    made.text, made.plan = text, make_plan(load_valid(text), text)
    for label, given in answers.items():
        made.answers(label, *given)
    return made.run()


@pytest.mark.rule("DOC-1", "DOC-4", "DOC-6")
def test_the_root_layout_of_s0_runs() -> None:
    assert load(ROOT).findings == ()
    assert answered(ROOT).status == "completed"


@pytest.mark.rule("TASK-2", "TASK-3", "TASK-4", "LOOP-1", "NEXT-1")
@pytest.mark.parametrize("example", [PAGES, OLDER_PAGES], ids=["S0 §13", "S4 §14"])
def test_the_paging_of_s0_and_s4_runs(example: str) -> None:
    """With canned answers, so that the statement may stay as its authors left it."""
    busy = error("http", retryable=True, http={"status": 503})
    conflict = error("postgres", pg={"code": "40001"})
    ran = answered(
        whole(example),
        fetch_page=[busy, page(1, True), page(2, False), page(1, False)],
        save_page=[conflict, ok({"rowcount": 1})],
    )
    assert (ran.status, list(ran.steps)[1:]) == ("completed", ["validate_results"])
    calls = [one.inputs for one in ran.calls if one.label == "fetch_page"]
    asked = [(one.url.rpartition("/")[2], one.params["page"]) for one in calls]
    assert asked == [("users", 1), ("users", 1), ("users", 2), ("orders", 1)]
    saved = {one.inputs.command.strip() for one in ran.calls if one.label == "save_page"}
    assert saved <= {"INSERT INTO ...", "INSERT INTO pagination_test_results (...)"}
    assert ran.labels().count("save_page") == 4


@pytest.mark.rule("NEXT-1", "NEXT-3")
@pytest.mark.parametrize("example", [PAGES, OLDER_PAGES], ids=["S0 §13", "S4 §14"])
def test_the_paging_of_s0_and_s4_cleans_up_after_a_failure(example: str) -> None:
    ran = answered(whole(example), fetch_page=[error("http", http={"status": 400})])
    assert (ran.status, list(ran.steps)[1:]) == ("completed", ["cleanup"])


@pytest.mark.rule("TOOL-0", "OUT-3")
@pytest.mark.parametrize("example", [PAGES, OLDER_PAGES], ids=["S0 §13", "S4 §14"])
def test_the_paging_runs_on_real_services(
    example: str, tmp_path: Path, http_server: HttpServer, database: Database
) -> None:
    """Only the statement, which its authors left out, is filled in."""
    sql(database, "CREATE TABLE pagination_test_results (id serial)")
    insert = "INSERT INTO pagination_test_results DEFAULT VALUES"
    for left_out in ("INSERT INTO pagination_test_results (...)", "INSERT INTO ..."):
        example = example.replace(left_out, insert)
    file = tmp_path / "playbook.yaml"
    file.write_text(AROUND.replace("EXAMPLE", example.replace(*REPAIRS["s4_14"])))
    http_server.totals["orders"] = 10
    answer = ran(file, tmp_path, f"api_url={http_server.url}", database=database)
    [report] = answer.objects()
    assert (answer.code, report["status"]) == (0, "completed")
    assert [one["step"] for one in report["steps"]][1:] == ["validate_results"]
    assert sql(database, "SELECT count(*) FROM pagination_test_results") == [(4,)]


@pytest.mark.rule("DIA-S2", "KEY-1")
def test_the_complete_example_of_s2_runs_as_written(
    tmp_path: Path, http_server: HttpServer, database: Database
) -> None:
    """It names no credential: the one that is registered as `postgres` is used (decision 0046)."""
    sql(database, "CREATE TABLE users (id int, name text, email text)")
    sql(database, "INSERT INTO users VALUES (2, 'Bo', 'bo@x')")
    home = str(tmp_path / "home")
    secret = json.dumps(database.credential).encode()
    words = ("credential", "add", "postgres", "--kind", "postgres", "--stdin")
    assert noetl(*words, stdin=secret, NOETL_HOME=home).code == 0
    answer = ran(ONBOARDING, tmp_path, f"api_url={http_server.url}/api/v1", "user_id=2")
    [report] = answer.objects()
    assert (answer.code, report["status"]) == (0, "completed")
    assert [one["step"] for one in report["steps"]] == [
        "start",
        "fetch_user",
        "send_welcome",
        "end",
    ]
    [sent] = http_server.seen
    assert json.loads(sent.body) == {"template": "welcome", "to": "bo@x"}


def ran(file: Path, folder: Path, *sets: str, database: Database | None = None) -> Answer:
    words = [word for one in sets for word in ("--set", one)]
    pg = json.dumps(database.credential) if database else ""
    home = str(folder / "home")
    return noetl("run", file, "--migrate", "--json", *words, NOETL_HOME=home, SOURCES_PG=pg)


def sql(database: Database, statement: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(database.url, autocommit=True) as connection:
        done = connection.execute(statement.encode())
        return done.fetchall() if done.description else []
