"""The kinds that send SQL to a database."""

from functools import partial
from typing import Annotated, Any, ClassVar

from noetl.kinds.fields import Auth, doc
from noetl.kinds.kind import Inputs, Kind

Statement = Annotated[
    str | None, doc("The SQL; several statements give the result of the last (OUT-3).")
]
_STATEMENTS = ("command", "query")


class SqlInputs(Inputs, frozen=True, kw_only=True):
    """What every database kind takes (TOOL-0)."""

    command: Statement = None
    query: Annotated[str | None, doc("Another name for `command`.")] = None
    params: Annotated[
        list[Any] | dict[str, Any],
        doc("Bind parameters: a list for `%s`, a mapping for `%(name)s`; a `%` is then `%%`."),
    ] = []
    auth: Auth = None

    @property
    def text(self) -> str:
        """`command`, or `query`, which is the same."""
        return self.command if self.command is not None else self.query or ""


class PostgresInputs(SqlInputs, frozen=True, kw_only=True):
    """With `rows` or `file` the last statement is a COPY over the connection."""

    streams: ClassVar[tuple[str, ...]] = ("rows",)
    rows: Annotated[
        Any, doc("What `COPY … FROM STDIN` loads: mappings or lists; text goes as it is.")
    ] = None
    file: Annotated[
        str | None, doc("File that `COPY … FROM STDIN` reads or `COPY … TO STDOUT` writes.")
    ] = None


class DuckdbInputs(SqlInputs, frozen=True, kw_only=True):
    """`database` is a file; without it the tables live as long as the step run."""

    streams: ClassVar[tuple[str, ...]] = ("rows",)

    params: Annotated[
        list[Any] | dict[str, Any], doc("Bind parameters: a list for `?`, a mapping for `$name`.")
    ] = []
    database: Annotated[str | None, doc("File of the database; in memory if left out.")] = None
    rows: Annotated[Any, doc("Mappings that the SQL reads as the table `rows`.")] = None
    columns: Annotated[
        dict[str, str] | None,
        doc("Names and types of the columns of `rows`; else what they look like."),
    ] = None


class SnowflakeInputs(SqlInputs, frozen=True, kw_only=True):
    """Where in the account the statement runs; the credential may say it too."""

    streams: ClassVar[tuple[str, ...]] = ("rows",)
    rows: Annotated[Any, doc("Values for the statement's placeholders, once for each row.")] = None

    database: Annotated[str | None, doc("Database to use.")] = None
    schema: Annotated[str | None, doc("Schema to use.")] = None
    warehouse: Annotated[str | None, doc("Warehouse to use.")] = None
    role: Annotated[str | None, doc("Role to use.")] = None


_sql = partial(Kind, one_of=(_STATEMENTS,), statements=_STATEMENTS)
POSTGRES = _sql(
    "postgres",
    PostgresInputs,
    "Run SQL on PostgreSQL.",
    block="pg",
    tells=("code", "sqlstate", "message", "place", "rowcount"),
    knobs=("pool", "timeout.connect"),
    needs={"": ("auth",)},
    extra="postgres",
    credential="--kind postgres --field host=HOST --field user=USER --field database=NAME",
)
DUCKDB = _sql(
    "duckdb",
    DuckdbInputs,
    "Run SQL on DuckDB, in memory or on a file.",
    block="duckdb",
    tells=("exception_type", "message", "rowcount"),
    knobs=("resources",),
    extra="duckdb",
)
SNOWFLAKE = _sql(
    "snowflake",
    SnowflakeInputs,
    "Run SQL on Snowflake.",
    block="snowflake",
    tells=("code", "sqlstate", "message", "rowcount", "query_id"),
    knobs=("pool", "timeout.connect", "timeout.read"),
    needs={"": ("auth",)},
    extra="snowflake",
    credential="--kind snowflake --field account=ACCOUNT --field user=USER",
)
