"""How much of a printed line is kept."""

import msgspec

from noetl.ports.event_log import PrintedLine

LONGEST_LINE = 65_536


def shortened(line: PrintedLine) -> PrintedLine:
    """The line with no more text than is kept; its end says how much is missing."""
    missing = len(line.text) - LONGEST_LINE
    if missing <= 0:
        return line
    text = f"{line.text[:LONGEST_LINE]}… ({missing} more characters)"
    return msgspec.structs.replace(line, text=text)
