"""Does the playbook make sense as a whole? One small function per rule, over the model."""

from noetl.playbook.model import Playbook
from noetl.playbook.reader import Reader


def check(reader: Reader, playbook: Playbook) -> None:
    """Run every check."""
