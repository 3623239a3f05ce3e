"""Names of subjects, and what is said where the library is missing or complains."""

import subprocess
import sys

import pytest

from noetl.adapters.nats.library import errors, reason_of, stream_errors
from noetl.adapters.nats.names import Names, token_of
from noetl.extras import command_for


@pytest.mark.parametrize(
    ("name", "token"),
    [
        ("default", "default"),
        ("a-b_C9", "a-b_C9"),
        ("a.b", "a=2Eb"),
        ("*", "=2A"),
        ("> x\r\n", "=3E=20x=0D=0A"),
        ("=2A", "=3D2A"),
        ("é", "=C3=A9"),
    ],
)
def test_a_name_is_one_token(name: str, token: str) -> None:
    assert token_of(name) == token


def test_names_do_not_meet() -> None:
    names = Names("r")
    all_names = [
        names.any_ask,
        names.any_roll,
        names.calls("any"),
        names.questions("any"),
        names.calls("any.ask"),
        names.rings("default", "s"),
        names.nudges("any"),
    ]
    assert len(set(all_names)) == len(all_names)
    assert names.stream == "R"
    assert (names.work, names.rings("a.b")) == ("r.work.*.*", "r.work.a=2Eb.*")


def test_a_missing_extra_names_the_command() -> None:
    program = (
        "import sys; sys.modules['nats'] = None\n"
        "from noetl.errors import SettingRefused\n"
        "try:\n    import noetl.adapters.nats.link\n"
        "except SettingRefused as refused:\n    print(refused)"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert command_for("nats") in told.stdout, told.stderr


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (stream_errors.ServiceUnavailableError(), "JetStream does not answer; "),
        (stream_errors.BadRequestError(code=400, description="no {x}"), "refuses: no {x}"),
        (errors.AuthorizationError(), "it refuses user, password or token"),
        (errors.TimeoutError(), "it does not answer in time"),
        (ConnectionRefusedError(111, "Connection\nrefused"), "[Errno 111] Connection refused"),
        (OSError(), "OSError"),
    ],
)
def test_faults_speak_to_people(fault: Exception, says: str) -> None:
    assert says in reason_of(fault)
