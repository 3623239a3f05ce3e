"""How the process ends: at once where nothing is left to do, and by Python where something is."""

import subprocess
import sys

import pytest

THREAD = """
import threading
threading.Thread(target=lambda: (threading.main_thread().join(), print('a thread ended'))).start()
"""


def ended(before: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    program = f"{before}\nfrom noetl.__main__ import end_at_once\nprint('said', end=' ')\n"
    program += f"end_at_once({code})\nprint('left to Python')"
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("code", [0, 1, 130])
def test_nothing_is_taken_apart_that_the_system_frees(code: int) -> None:
    done = ended("", code)
    assert (done.returncode, done.stdout, done.stderr) == (code, "said ", "")


def test_what_was_to_be_done_at_the_end_is_done() -> None:
    done = ended("import atexit; atexit.register(print, 'the last work is done')")
    assert (done.returncode, done.stdout) == (0, "said the last work is done\n")


def test_a_thread_that_works_is_waited_for() -> None:
    done = ended(THREAD)
    assert (done.returncode, done.stdout) == (0, "said left to Python\na thread ended\n")


def test_output_that_cannot_be_written_is_told() -> None:
    done = ended("import sys; sys.stdout = open('/dev/full', 'w')")
    assert done.returncode == 120
    assert "No space left on device" in done.stderr
