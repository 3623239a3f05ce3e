"""What code cannot see, cannot keep and cannot survive."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest
from tests.unit.tools.python.bench import Bench, gone

DIED = {"exception_type": "ChildDied", "traceback": ""}
LEFT_BEHIND = "import subprocess\nleft = subprocess.Popen(['sleep', '600'], start_new_session={})"
ORPHAN = dedent(
    """\
    import os
    told, tell = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.write(tell, str(os.getpid()).encode())
            os.execvp("sleep", ["sleep", "600"])
        os._exit(0)
    os.wait()
    print(os.read(told, 99).decode(), flush=True)
    """
)
OPEN_FILES = dedent(
    """\
    import os
    links = [f"/proc/self/fd/{number}" for number in range(3, 64)]
    result = sorted(os.readlink(link).partition(":")[0] for link in links if os.path.lexists(link))
    """
)
BABBLE = dedent(
    """\
    import os
    for number in range(3, 64):
        try:
            os.write(number, b"\\xff" * 64)
        except OSError:
            pass
    """
)


def test_the_environment_is_empty(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOETL_KEY", "secret")
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    environment = bench.result("import os\nresult = dict(os.environ)")
    folder = bench.result("import os\nresult = os.getcwd()")
    assert environment == {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "HOME": folder,
        "TMPDIR": folder,
    }


def test_no_descriptor_is_inherited(bench: Bench, tmp_path: Path) -> None:
    with open(tmp_path / "open", "w") as file:
        os.set_inheritable(file.fileno(), True)
        assert bench.result(OPEN_FILES) == ["pipe", "socket"]


def test_a_subprocess_sees_nothing_of_the_connection(bench: Bench) -> None:
    look = "subprocess.check_output(['ls', '/proc/self/fd'], close_fds=False)"
    found = bench.result(f"import subprocess\nresult = {look}.decode().split()")
    assert found == ["0", "1", "2", "3"]


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("os.getsid(0) == os.getpid() == os.getpgid(0)", True),
        ("resource.getrlimit(resource.RLIMIT_CORE)", [0, 0]),
        ("resource.getrlimit(resource.RLIMIT_NOFILE)", [1024, 1024]),
        ("oct(os.umask(0))", "0o77"),
        ("os.stat('.').st_mode & 0o777", 0o700),
        ("os.listdir('.')", []),
        ("sys.stdin.read()", ""),
        ("sys.flags.isolated, sys.flags.no_site", [1, 1]),
        ("[name for name in sys.modules if 'inside' in name or 'noetl' in name]", []),
        ("[path for path in sys.path if 'site-packages' in path or 'noetl' in path]", []),
    ],
)
def test_the_process_is_its_own(bench: Bench, expression: str, value: object) -> None:
    assert bench.result(f"import os, resource, sys\nresult = {expression}") == value


@pytest.mark.parametrize(
    ("code", "message", "retryable"),
    [
        ("import os\nos._exit(3)", "ended with exit code 3 before its answer", False),
        (
            "import os\nos.kill(os.getpid(), 9)",
            "was killed by signal 9 (SIGKILL); perhaps the system ran out of memory",
            True,
        ),
        ("import ctypes\nctypes.string_at(0)", "was killed by signal 11 (SIGSEGV)", True),
        (
            "import os, signal\nif os.fork(): os._exit(4)\nsignal.pause()",
            "ended with exit code 4 before its answer",
            False,
        ),
    ],
)
def test_a_child_that_dies_is_told(bench: Bench, code: str, message: str, retryable: bool) -> None:
    outcome = bench.run(code)
    message = f"the child process {message}"
    assert outcome.error == {"kind": "python", "message": message, "retryable": retryable}
    assert outcome.block == DIED
    assert bench.result("result = 1") == 1


@pytest.mark.parametrize("code", ["import os\nos.closerange(3, 64)", BABBLE])
def test_who_breaks_the_connection_ends_there(bench: Bench, code: str) -> None:
    assert bench.run(code).block == DIED
    assert bench.result("result = 1") == 1


@pytest.mark.parametrize("fault", ["", "\nif pid == 0: 1 / 0"])
def test_a_fork_that_goes_on_does_not_answer(bench: Bench, fault: str) -> None:
    code = f"import os\npid = os.fork(){fault}\nif pid: os.waitpid(pid, 0)\nresult = pid > 0"
    assert [bench.result(code) for _ in range(3)] == [True, True, True]


def test_memory_has_a_limit(bench: Bench) -> None:
    outcome = bench.run("result = bytearray(200_000_000)", memory="100Mi")
    assert (outcome.block or {})["exception_type"] == "MemoryError"
    assert bench.result("result = len(bytearray(50_000_000))", memory="100Mi") == 50_000_000
    assert bench.result("result = len(bytearray(200_000_000))") == 200_000_000


def test_an_amount_of_memory_that_is_none_is_refused(bench: Bench) -> None:
    message = "spec.resources.memory is 'much'; expected bytes, or text such as '512Mi' or '2G'"
    error = {"kind": "input", "message": message, "retryable": False}
    assert bench.error("result = 1", memory="much") == error


def test_time_has_a_limit(bench: Bench) -> None:
    message = "the code did not end within 0.2 s"
    error = {"kind": "timeout", "message": message, "retryable": True}
    assert bench.error("while True: pass", total=0.2) == error
    assert (
        bench.error("import time\ntry: time.sleep(600)\nfinally: time.sleep(600)", total=0.2)
        == error
    )
    assert bench.result("result = 1", total=30) == 1


def test_what_was_printed_before_a_death_is_kept(bench: Bench) -> None:
    bench.run("print('before', flush=True)\nwhile True: pass", total=0.3)
    bench.run("import os\nprint('again')\nos._exit(1)")
    assert bench.lines == [("stdout", "before"), ("stdout", "again")]


@pytest.mark.parametrize("session", [False, True])
def test_processes_left_behind_are_killed(bench: Bench, session: bool) -> None:
    assert gone(bench.result(f"{LEFT_BEHIND.format(session)}\nresult = left.pid"))


@pytest.mark.parametrize("end", ["1 / 0", "while True: pass"])
def test_orphans_are_killed_with_the_child(bench: Bench, end: str) -> None:
    assert bench.run(ORPHAN + end, total=1).status == "error"
    [(_, pid)] = bench.lines
    assert gone(int(pid))


def test_cancelling_a_call_kills_its_child(bench: Bench) -> None:
    async def cancel() -> int:
        code = "import os\nprint(os.getpid(), flush=True)\nwhile True: pass"
        running = asyncio.ensure_future(bench.call(code))
        while not bench.lines:
            await asyncio.sleep(0)
        running.cancel()
        await asyncio.wait([running])
        assert running.cancelled()
        return int(bench.lines[0][1])

    assert gone(bench.wait(cancel()))
    assert bench.result("result = 1") == 1


WORKER = dedent(
    """
    import asyncio, pathlib, sys
    from tests.unit.tools.python.bench import Bench
    bench = Bench(pathlib.Path(sys.argv[1]))
    bench.place.log = lambda call, stream, text: print(text, flush=True)
    bench.run("import os\\nprint(os.getpid(), flush=True)\\nwhile True: pass")
    """
)


def test_children_die_with_the_worker(tmp_path: Path) -> None:
    worker = subprocess.Popen(
        [sys.executable, "-c", WORKER, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert worker.stdout is not None
    pid = int(worker.stdout.readline())
    worker.send_signal(signal.SIGKILL)
    worker.wait()
    worker.stdout.close()
    assert gone(pid)


def test_a_python_that_is_not_there_is_told(tmp_path: Path) -> None:
    bench = Bench(tmp_path, python=str(tmp_path / "python"))
    error = bench.error("result = 1")
    bench.close()
    assert (error["kind"], error["retryable"]) == ("python", True)
    assert error["message"].startswith("the child process could not be started: ")


def test_the_folder_goes_with_the_child(bench: Bench) -> None:
    code = "import os, pathlib\npathlib.Path('a/b').mkdir(parents=True)\nresult = os.getcwd()"
    folder = bench.result(code)
    assert Path(folder).exists()
    bench.wait(bench.tool.close())
    assert not Path(folder).exists()
