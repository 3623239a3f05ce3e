"""A kind whose extra is not installed says the command that installs it."""

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.workplace import BenchPlace, call_of

from noetl.extras import command_for
from noetl.kinds.kind import Inputs
from noetl.kinds.sql import DuckdbInputs, PostgresInputs, SnowflakeInputs
from noetl.kinds.storage import GcsInputs, S3Inputs
from noetl.messages.outcome import Outcome
from noetl.tools.sql.duck import DuckDbTool
from noetl.tools.sql.snowflake import SnowflakeTool
from noetl.tools.storage.gcs import gcs_tool
from noetl.tools.storage.s3 import s3_tool
from noetl.tools.table import Toolbox
from noetl.tools.tool import Tool


def tool_of(kind: str) -> Callable[[], Tool]:
    """As a worker has it: the module of the tool is imported when it is first asked for."""

    def made() -> Tool:
        sys.modules.pop("noetl.tools.sql.postgres", None)
        return Toolbox(Path())[kind]

    return made


@pytest.mark.parametrize(
    ("tool", "inputs", "hidden", "extra"),
    [
        (s3_tool, S3Inputs(operation="list", bucket="b"), "obstore.store", "s3"),
        (gcs_tool, GcsInputs(operation="list", bucket="b"), "google.oauth2", "gcs"),
        (
            SnowflakeTool,
            SnowflakeInputs(command="select 1", auth="db"),
            "snowflake.connector",
            "snowflake",
        ),
        (DuckDbTool, DuckdbInputs(command="select 1"), "duckdb", "duckdb"),
        (tool_of("postgres"), PostgresInputs(command="select 1", auth="db"), "psycopg", "postgres"),
    ],
)
def test_the_message_names_the_command(
    monkeypatch: pytest.MonkeyPatch,
    tool: Callable[[], Tool],
    inputs: Inputs,
    hidden: str,
    extra: str,
) -> None:
    monkeypatch.setitem(sys.modules, hidden, None)

    async def asking() -> Outcome:
        place = BenchPlace(db={"account": "a", "user": "u", "password": "p"})
        return await tool().call(call_of(inputs), place)

    outcome = asyncio.run(asking())

    assert outcome.error is not None
    assert outcome.error["kind"] == "not_found"
    assert command_for(extra) in outcome.error["message"]
    assert outcome.block is not None
