"""The kinds that send SQL to a database."""

from typing import Annotated, Any, ClassVar

from msgspec import Meta, field

from noetl.kinds.fields import Auth
from noetl.kinds.kind import Inputs, Kind

Statement = Annotated[
    str | None,
    Meta(description="The SQL; several statements give the result of the last (OUT-3)."),
]
_STATEMENTS = ("command", "query")


class SqlInputs(Inputs, frozen=True, kw_only=True):
    """What every database kind takes (TOOL-0)."""

    command: Statement = None
    query: Annotated[str | None, Meta(description="Another name for `command`.")] = None
    params: Annotated[
        list[Any] | dict[str, Any],
        Meta(description="Bind parameters: a list for `%s`, a mapping for `%(name)s`."),
    ] = field(default_factory=list)
    auth: Auth = None

    @property
    def text(self) -> str:
        """`command`, or `query`, which is the same."""
        return self.command if self.command is not None else self.query or ""


class PostgresInputs(SqlInputs, frozen=True, kw_only=True):
    """With `rows` or `file` the last statement is a COPY over the connection."""

    streams: ClassVar[tuple[str, ...]] = ("rows",)
    rows: Annotated[
        Any,
        Meta(description="What `COPY … FROM STDIN` loads: mappings or lists; text goes as it is."),
    ] = None
    file: Annotated[
        str | None,
        Meta(description="File that `COPY … FROM STDIN` reads or `COPY … TO STDOUT` writes."),
    ] = None


class DuckdbInputs(SqlInputs, frozen=True, kw_only=True):
    """`database` is a file; without it the tables live as long as the step run."""

    streams: ClassVar[tuple[str, ...]] = ("rows",)

    params: Annotated[
        list[Any] | dict[str, Any],
        Meta(description="Bind parameters: a list for `?`, a mapping for `$name`."),
    ] = field(default_factory=list)
    database: Annotated[
        str | None, Meta(description="File of the database; in memory if left out.")
    ] = None
    rows: Annotated[Any, Meta(description="Mappings that the SQL reads as the table `rows`.")] = (
        None
    )
    columns: Annotated[
        dict[str, str] | None,
        Meta(description="Names and types of the columns of `rows`; else what they look like."),
    ] = None


class SnowflakeInputs(SqlInputs, frozen=True, kw_only=True):
    """Where in the account the statement runs; the credential may say it too."""

    streams: ClassVar[tuple[str, ...]] = ("rows",)
    rows: Annotated[
        Any, Meta(description="Values for the statement's placeholders, once for each row.")
    ] = None

    database: Annotated[str | None, Meta(description="Database to use.")] = None
    schema: Annotated[str | None, Meta(description="Schema to use.")] = None
    warehouse: Annotated[str | None, Meta(description="Warehouse to use.")] = None
    role: Annotated[str | None, Meta(description="Role to use.")] = None


POSTGRES = Kind(
    name="postgres",
    inputs=PostgresInputs,
    summary="Run SQL on PostgreSQL.",
    block="pg",
    one_of=(_STATEMENTS,),
    statements=_STATEMENTS,
)
DUCKDB = Kind(
    name="duckdb",
    inputs=DuckdbInputs,
    summary="Run SQL on DuckDB, in memory or on a file.",
    block="duckdb",
    one_of=(_STATEMENTS,),
    statements=_STATEMENTS,
)
SNOWFLAKE = Kind(
    name="snowflake",
    inputs=SnowflakeInputs,
    summary="Run SQL on Snowflake.",
    block="snowflake",
    extra="snowflake",
    one_of=(_STATEMENTS,),
    statements=_STATEMENTS,
)
