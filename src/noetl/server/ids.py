"""Ids that chance makes; all others derive from their cause (EVT-0)."""

import os
import time

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"


def new_execution_id() -> str:
    """Ids sort by the time of their making; the rest is chance."""
    number = (int(time.time() * 1000) << 40) | int.from_bytes(os.urandom(5))
    return "".join(ALPHABET[(number >> work_loop) & 31] for work_loop in range(85, -1, -5))
