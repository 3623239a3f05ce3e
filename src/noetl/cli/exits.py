"""What the exit code of every command means; scripts rely on these numbers."""

OK = 0
FAILED = 1
INVALID = 2
UNUSABLE = 3
"""Usage or environment: nothing was decided about a playbook."""
INTERRUPTED = 130
BROKEN_PIPE = 141
"""What a shell reports for a program that SIGPIPE ended."""
