"""Nobody can listen beside the process that hands out the connections of shards."""

import socket

import pytest

from noetl.api.serve import listen

PORT = socket.SO_REUSEPORT
ADDRESS = socket.SO_REUSEADDR


@pytest.mark.parametrize("options", [(PORT,), (ADDRESS,), (ADDRESS, PORT)])
@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
@pytest.mark.parametrize("ours", ["127.0.0.1", "0.0.0.0"])
def test_a_stranger_of_the_same_user_cannot_join_the_port(
    ours: str, host: str, options: tuple[int, ...]
) -> None:
    with listen(ours, 0) as door, socket.socket() as stranger:
        for option in options:
            stranger.setsockopt(socket.SOL_SOCKET, option, 1)
        with pytest.raises(OSError, match="in use"):
            stranger.bind((host, door.getsockname()[1]))
