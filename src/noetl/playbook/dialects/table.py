"""Which dialects are translated, and in which order (DIA)."""

from noetl.playbook.dialects import comments, s2, s4, upstream
from noetl.playbook.dialects.rewrite import Rewriting

# Outer forms first: what `tool` or `next` looks like is settled before their insides are read.
TABLES: tuple[tuple[Rewriting, ...], ...] = (
    comments.FIRST,
    upstream.TABLE,
    s2.TABLE,
    s4.TABLE,
    comments.LAST,
)
