"""What the example talks to: an S3 and a Google Cloud Storage, each with an empty bucket."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.support import gcs, s3


@contextmanager
def services() -> Iterator[dict[str, Any]]:
    """Both live as long as the example runs."""
    with s3.serving() as here, gcs.serving() as there:
        yield {
            "environment": {
                "S3_CREDENTIAL": json.dumps(here.credential),
                "GCS_CREDENTIAL": json.dumps(there.credential),
            }
        }
