"""What code prints: line by line, in order, bounded, and never in the way of the answer."""

from pathlib import Path

import pytest
from tests.unit.tools.python.bench import Bench

from noetl.masking import KNOWN
from noetl.tools.process.output import Output

SECRET = "qwjkzmwptrvnldshfgbcyaeuio"


@pytest.mark.parametrize(
    ("code", "lines"),
    [
        ("print('a')\nprint('b')", ["out a", "out b"]),
        ("print('a', end='')", ["out a"]),
        ("print()", ["out "]),
        ("print('a\\r\\nb')", ["out a", "out b"]),
        ("print('ü ☃')", ["out ü ☃"]),
        ("print('\\ud800')", ["out \\ud800"]),
        (
            "import sys\nfor n in range(3): print(n, file=(sys.stdout, sys.stderr)[n % 2])",
            ["out 0", "err 1", "out 2"],
        ),
        ("import sys\nsys.stdout.buffer.write(b'\\xff\\x00\\n')", ["out \ufffd\x00"]),
        ("import os\nos.write(1, b'raw\\xfe\\n')", ["out raw\ufffd"]),
        ("import os\nos.write(2, b'no end')", ["err no end"]),
        ("import subprocess\nsubprocess.run(['echo', 'sub'])", ["out sub"]),
        ("import subprocess\nsubprocess.run('echo sub >&2', shell=True)", ["err sub"]),
        ("import warnings\nwarnings.warn('old')", ["err <code>:2: UserWarning: old"]),
        ("import logging\nlogging.warning('hm')", ["err WARNING:root:hm"]),
        ("import sys\nsys.stdout.close()", []),
        ("import sys\nsys.stdout = None\nprint('nowhere')", []),
        ("import os\nos.close(1)\nos.close(2)\nprint('a')", ["out a"]),
        (
            "import sys\nprint(sys.stdout.fileno(), sys.stderr.fileno(), sys.stdout.isatty())",
            ["out 1 2 False"],
        ),
    ],
)
def test_lines(bench: Bench, code: str, lines: list[str]) -> None:
    assert bench.run(code).status == "ok"
    assert [f"{stream[3:]} {text}" for stream, text in bench.lines] == lines


def test_ten_megabytes_are_cut_and_counted(bench: Bench) -> None:
    bench.result("for n in range(100_000): print('x' * 99)")
    *kept, dropped = bench.lines
    assert {*kept[:-1]} == {("stdout", "x" * 99)}
    assert sum(len(text) + 1 for _, text in kept) == 1_048_576 + 1
    assert dropped == ("system", f"{10_000_000 - 1_048_576} further bytes of output were dropped")


def test_ten_megabytes_without_a_line_end_do_not_hinder(bench: Bench) -> None:
    code = "import os\nfor _ in range(100): os.write(1, b'\\x80' * 100_000)\nresult = 1"
    assert bench.result(code) == 1
    assert [stream for stream, _ in bench.lines] == ["stdout", "system"]


def test_a_line_that_is_cut_ends_before_half_a_secret(bench: Bench) -> None:
    KNOWN.add(SECRET)
    for room in (1, 5, len(SECRET) - 1):
        bench.result(f"print('x' * (1_048_576 - {room}) + secret)", secret=SECRET)
        line, dropped = bench.lines[-2:]
        assert dropped[0] == "system"
        assert line[1].strip("x") == ""
        assert len(line[1]) > 1_000_000


def test_each_call_has_its_own_room(bench: Bench) -> None:
    for _ in range(3):
        bench.result("print('x' * 1_000_000)")
    assert [len(text) for _, text in bench.lines] == [1_000_000] * 3


def test_lines_of_calls_at_once_are_told_apart(tmp_path: Path) -> None:
    # The workplace gets the call with each line; here two tools stand for two calls.
    one, two = Bench(tmp_path), Bench(tmp_path)
    one.result("print('one')")
    two.result("print('two')")
    found = one.lines, two.lines
    one.close()
    two.close()
    assert found == ([("stdout", "one")], [("stdout", "two")])


FORGED = """
import os
for number in range(3, 64):
    link = f"/proc/self/fd/{number}"
    if os.path.lexists(link) and os.readlink(link).startswith("pipe"):
        os.write(number, b"\\x09\\xff\\xff" + b"x" * 9)
"""


def test_a_forged_head_harms_nobody(bench: Bench) -> None:
    bench.result(FORGED)
    assert bench.lines == []
    assert bench.result("print('next')\nresult = 1") == 1
    assert bench.lines == [("stdout", "next")]


class TestPieces:
    """The parts of a line may come in any pieces."""

    @pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 100])
    def test_python_streams(self, size: int) -> None:
        lines: list[tuple[str, str]] = []
        output = Output(lambda stream, text: lines.append((stream, text)))
        sent = b"\x01\x00\x03a\nb" + b"\x02\x00\x02c\n" + b"\x01\x01\x00" + b"d" * 255 + b"\n"
        for start in range(0, len(sent), size):
            output.printed(sent[start : start + size])
        output.end()
        assert lines == [("stdout", "a"), ("stderr", "c"), ("stdout", "b" + "d" * 255)]

    def test_a_line_of_two_pipes_is_two_lines(self) -> None:
        lines: list[tuple[str, str]] = []
        output = Output(lambda stream, text: lines.append((stream, text)))
        output.written(1, b"raw")
        output.written(-1, b"printed\n")
        output.end()
        assert lines == [("stdout", "printed"), ("stdout", "raw")]

    def test_what_does_not_fit_is_counted(self) -> None:
        lines: list[tuple[str, str]] = []
        output = Output(lambda stream, text: lines.append((stream, text)), most=5)
        output.written(1, b"abc\ndef\n")
        output.written(2, b"ghi\n")
        output.end()
        assert lines == [
            ("stdout", "abc"),
            ("stdout", "d"),
            ("system", "7 further bytes of output were dropped"),
        ]
