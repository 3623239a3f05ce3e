"""Which tool kinds are there? The one table that validation, schema and runtime read (TOOL)."""

from collections.abc import Mapping
from types import MappingProxyType

from noetl.kinds.code import CONTAINER, PYTHON, SCRIPT, SHELL
from noetl.kinds.flow import ITERATOR, NOOP, PLAYBOOK, TRANSFORM, WAIT, WORKBOOK
from noetl.kinds.http import HTTP
from noetl.kinds.kind import Kind
from noetl.kinds.messaging import NATS
from noetl.kinds.quantum import QUANTUM
from noetl.kinds.secrets import SECRETS
from noetl.kinds.sql import DUCKDB, POSTGRES, SNOWFLAKE
from noetl.kinds.storage import GCS, S3

_ALL = (
    *(HTTP, POSTGRES, DUCKDB, SNOWFLAKE, PYTHON, SCRIPT, SHELL, CONTAINER),
    *(PLAYBOOK, WORKBOOK, ITERATOR, NOOP, TRANSFORM, WAIT, SECRETS),
    *(GCS, S3, NATS, QUANTUM),
)
"""In the order in which the documentation shows them."""
KINDS: Mapping[str, Kind] = MappingProxyType({kind.name: kind for kind in _ALL})
