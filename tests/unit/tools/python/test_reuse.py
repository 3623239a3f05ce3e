"""When a child is used again, and that nothing is left in it for the next call."""

from pathlib import Path

import pytest
from tests.unit.tools.python.bench import Bench

PID = "import os\nresult = os.getpid()"


def pid(bench: Bench, execution: str = "e1", **more: object) -> int:
    return int(bench.result(PID, execution=execution, **more))


PATTERNS = """
match (lambda: 0):
    case object(__globals__=names):
        match names["__builtins__"]:
            case object(__dict__=builtin):
                builtin["print"] = None
"""
"""Names in a pattern are attributes too, and stand nowhere among the names of a code."""


@pytest.mark.parametrize(
    "code",
    [
        "result = 1",
        "import json, datetime, re, collections\nresult = json.dumps([])",
        "import random, logging, statistics\nrandom.seed(1)",
        "import subprocess\nresult = subprocess.check_output(['echo', 'x']).decode()",
        "import threading\nt = threading.Thread(target=print)\nt.start()\nt.join()",
        "with open('file', 'w') as file: file.write('x')",
        "async def main(): return 1",
        "import asyncio\nasync def main(): await asyncio.to_thread(print)",
        "print('x' * 100_000)",
        "class A: pass",
        "import os\nos.chdir('/')",
        "import sys\nsys.setrecursionlimit(5000)",
        "import decimal\ndecimal.getcontext().prec = 3",
    ],
)
def test_a_child_that_stayed_clean_is_used_again(bench: Bench, code: str) -> None:
    first = pid(bench)
    bench.result(code)
    assert pid(bench) == first


@pytest.mark.parametrize(
    "code",
    [
        "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()",
        "import subprocess\nleft = subprocess.Popen(['sleep', '600'])",
        "import subprocess\nended = subprocess.Popen(['true'])",
        "import json\njson.dumps = None",
        "import builtins\nbuiltins.print = None",
        "import os\nos.environ['A'] = 'b'",
        "import os\nos.write = os.listdir = os.chdir = None",
        "import sys\nsys.path.append('/elsewhere')",
        "import sys\nsys.stdout = None",
        "import os\nopened = os.open('file', os.O_CREAT)",
        "import signal\nsignal.alarm(600)",
        "import os, shutil\nshutil.rmtree(os.getcwd())",
        PATTERNS,
    ],
)
def test_a_child_that_was_changed_is_not_used_again(bench: Bench, code: str) -> None:
    first = pid(bench)
    bench.result(code)
    assert pid(bench) != first


@pytest.mark.parametrize(
    "code", ["1 / 0", "result = {1}", "x = =", "while True: pass", "import os\nos._exit(0)"]
)
def test_a_child_is_not_used_again_after_an_error(bench: Bench, code: str) -> None:
    first = pid(bench)
    bench.error(code, total=0.5)
    assert pid(bench) != first


def test_executions_and_limits_do_not_share_a_child(bench: Bench) -> None:
    found = [pid(bench), pid(bench, "e2"), pid(bench, memory="1Gi"), pid(bench, "e2")]
    assert len({*found[:3]}) == 3


@pytest.mark.parametrize(
    ("first", "second", "result"),
    [
        ("left = 1", "result = 'left' in globals()", False),
        ("import json\njson.left = 1", "import json\nresult = hasattr(json, 'left')", False),
        (
            "import random\nrandom.left = 1",
            "import random\nresult = hasattr(random, 'left')",
            False,
        ),
        (
            "import asyncio, logging\nlogging.left = 1",
            "import asyncio, logging\nresult = hasattr(logging, 'left')",
            False,
        ),
        ("import sys\nsys.modules['json'] = None", "import json\nresult = json.dumps([])", "[]"),
        ("__builtins__.left = 1", "result = hasattr(__builtins__, 'left')", False),
        ("open('left', 'w').close()", "import os\nresult = os.listdir('.')", []),
        (
            "import os\nos.mkdir('a')\nos.symlink('/', 'a/b')\nos.chdir('a')",
            "import os\nresult = os.listdir('.')",
            [],
        ),
        ("import os\nos.umask(0)", "import os\nresult = os.umask(0)", 0o077),
        (
            "import sys\nsys.setrecursionlimit(9999)",
            "import sys\nresult = sys.getrecursionlimit()",
            1000,
        ),
        (
            "import decimal\ndecimal.getcontext().prec = 3",
            "import decimal\nresult = decimal.getcontext().prec",
            28,
        ),
        ("import os\nos.environ['LEFT'] = '1'", "import os\nresult = os.getenv('LEFT')", None),
        ("left = 1", "import task\nresult = hasattr(task, 'left')", False),
    ],
)
def test_nothing_is_left_for_the_next_call(
    bench: Bench, first: str, second: str, result: object
) -> None:
    bench.result(first)
    assert bench.result(second) == result


def test_args_are_new_each_time(bench: Bench) -> None:
    code = "rows.append(1)\nresult = len(rows)"
    assert [bench.result(code, rows=[]) for _ in range(3)] == [1, 1, 1]


def test_many_codes_in_one_child(bench: Bench) -> None:
    assert [bench.result(f"result = {n}") for n in range(200)] == list(range(200))


def test_a_folder_emptied_after_a_call_was_not_followed_out_of(
    bench: Bench, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("kept", "utf-8")
    bench.result("import os\nos.symlink(path, 'link')", path=str(tmp_path))
    pid(bench)
    assert (tmp_path / "file").read_text("utf-8") == "kept"


LEAVES = (
    "import json, os, pathlib\njson.left = os.environ['LEFT'] = 'here'\npathlib.Path('f').touch()"
)
FINDS = "import json, os\nresult = [getattr(json, 'left', None), os.getenv('LEFT'), os.listdir()]"


@pytest.mark.rule("TOOL-5")
def test_shared_tasks_find_what_earlier_ones_left(bench: Bench) -> None:
    assert bench.run(LEAVES, shared=True).status == "ok"
    assert bench.result(FINDS, shared=True) == ["here", "here", ["f"]]


@pytest.mark.rule("TOOL-5")
@pytest.mark.parametrize(
    "other", [{"execution": "e2"}, {"memory": "1Gi"}, {"shared": False}], ids=str
)
def test_what_is_shared_stays_in_its_execution(bench: Bench, other: dict[str, object]) -> None:
    assert bench.run(LEAVES, shared=True).status == "ok"
    assert bench.result(FINDS, **{"shared": True, **other}) == [None, None, []]


@pytest.mark.rule("TOOL-5")
@pytest.mark.parametrize(
    "code",
    [
        "1 / 0",
        "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()",
        "import subprocess\nleft = subprocess.Popen(['sleep', '600'])",
    ],
)
def test_a_shared_child_is_thrown_away_for_the_same_reasons(bench: Bench, code: str) -> None:
    first = pid(bench, shared=True)
    assert pid(bench, shared=True) == first
    bench.run(code, shared=True)
    assert pid(bench, shared=True) != first


@pytest.mark.rule("TOOL-5")
def test_names_of_the_code_are_fresh_where_all_else_is_shared(bench: Bench) -> None:
    bench.result("import math\nresult = mine = 1", shared=True)
    assert bench.error("import math\nresult = mine", shared=True)["kind"] == "python"
