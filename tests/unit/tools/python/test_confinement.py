"""Children in namespaces of their own: what they see, how they end, and kernels that allow none."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.house.tree import ROOT
from tests.unit.tools.python.bench import Bench

from noetl.tools.bounds import CPU_SECONDS, DEMANDED, WITHOUT, cpu_seconds
from noetl.tools.python.tool import died

SEEN = "import os\nresult = sorted(int(name) for name in os.listdir('/proc') if name.isdigit())"
STRAY = """
import subprocess
subprocess.Popen(["sleep", marker], start_new_session=True)
while end is None:
    pass
raise SystemExit(end) if end else ValueError
"""


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path, namespaces="demand")
    yield bench
    bench.close()


def running(marker: str) -> bool:
    """Whether a process with this word on its command line lives on the machine."""
    lines = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(file.read_bytes().split(b"\0"))
        except OSError:
            continue
    return any(marker.encode() in words for words in lines)


def test_code_sees_its_own_processes_only(bench: Bench) -> None:
    assert bench.result(SEEN) == [1, 2]
    assert bench.result("import os\nresult = os.getppid()") == 0


def test_a_child_is_used_again(bench: Bench) -> None:
    look = "import os\nresult = os.stat('/proc/self').st_ctime_ns, os.readlink('/proc/self/ns/pid')"
    assert bench.result(look)[1] == bench.result(look)[1]


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("import os\nos._exit(7)", "exit code 7"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", "signal 9 (SIGKILL)"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)", "signal 11 (SIGSEGV)"),
        (
            "import os, signal\nsignal.signal(13, signal.SIG_DFL)\nos.kill(os.getpid(), 13)",
            "signal 13 (SIGPIPE)",
        ),
    ],
)
def test_how_it_died_is_told_from_outside(bench: Bench, code: str, says: str) -> None:
    assert says in bench.error(code)["message"]


@pytest.mark.parametrize(("end", "total"), [(None, 0.5), (3, None), (0, None)])
def test_nothing_that_it_started_outlives_it(
    bench: Bench, tmp_path: Path, end: int | None, total: float | None
) -> None:
    marker = f"600.{abs(hash(tmp_path)) % 10**9}"

    error = bench.error(STRAY, marker=marker, end=end, total=total)

    assert error["kind"] == ("timeout" if total else "python")
    bench.wait(bench.tool.close())
    assert not running(marker)


def test_a_limit_of_processor_time_ends_it(bench: Bench) -> None:
    code = "import resource\nresource.setrlimit(resource.RLIMIT_CPU, (1, -1))\nwhile True: pass"
    error = bench.error(code)
    assert (error["kind"], error["retryable"]) == ("limit", False)
    assert error == died(-24).error


@pytest.mark.parametrize(("total", "most"), [(None, CPU_SECONDS), (0.5, 3), (10, 22)])
def test_the_timeout_bounds_the_processor_time(total: float | None, most: int) -> None:
    assert cpu_seconds(total, 2) == most


def test_each_call_of_a_warm_child_has_its_own_time(bench: Bench) -> None:
    limit = "import resource\nresult = resource.getrlimit(resource.RLIMIT_CPU)[0]"
    first, second = (bench.result(limit, total=total) for total in (100.0, 50.0))
    processors = len(os.sched_getaffinity(0))
    assert first - second == 50 * processors


FORBIDDING = 'echo 0 > /proc/sys/user/max_pid_namespaces && exec "$0" -c "$@"'
WORKER = """
import sys
from pathlib import Path
from tests.support.kernels import forbid_landlock
from tests.unit.tools.python.bench import Bench

if sys.argv[2:]:
    forbid_landlock()
for mode in ("auto", "demand"):
    bench = Bench(Path(sys.argv[1]), namespaces=mode)
    ends = [bench.run("result = 1") for _ in range(2)]
    print([end.result or end.error["message"] for end in ends], bench.lines)
    bench.wait(bench.tool.close())
"""


@pytest.mark.parametrize("landlock", [True, False])
def test_a_kernel_that_confines_nothing_is_told_of_once_or_refused(
    tmp_path: Path, landlock: bool
) -> None:
    """A limit of the kernel, which whoever owns a user namespace may set in there."""
    words = ["unshare", "--user", "--map-root-user", "sh", "-c", FORBIDDING]
    ended = subprocess.run(
        [*words, sys.executable, WORKER, str(tmp_path), *(() if landlock else ("without",))],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=True,
        text=True,
    )
    confined = [f"{[1, 1]} []"] * 2
    free = [f"{[1, 1]} {[('system', WITHOUT)]}", f"{[DEMANDED, DEMANDED]} []"]
    assert ended.stdout.splitlines() == (confined if landlock else free)
