"""What the example moves rows between: a PostgreSQL and a Snowflake, both empty."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.support import postgres, snowflake


@contextmanager
def services() -> Iterator[dict[str, Any]]:
    """Both live as long as the example runs."""
    with (
        postgres.running() as server,
        server.fresh_database() as database,
        snowflake.serving() as snow,
    ):
        yield {
            "environment": {
                "EXAMPLE_PG": json.dumps(database.credential),
                "EXAMPLE_SNOWFLAKE": json.dumps(snow.credential),
            }
        }
