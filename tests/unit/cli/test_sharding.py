"""Who can join the port of shards, and that whoever starts them with workers is told."""

import socket
from pathlib import Path

import pytest

from noetl.api.serve import bound
from noetl.cli.background.sharding import shares_user
from noetl.settings import Settings


def test_every_process_of_the_user_can_join_the_port() -> None:
    with bound("127.0.0.1", 0, shared=True) as shard, socket.socket() as task:
        task.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        task.bind(shard.getsockname())
        task.listen()


@pytest.mark.parametrize(
    ("workers", "auth", "told"), [(2, True, True), (0, True, False), (2, False, False)]
)
def test_it_is_told_where_tasks_could_see_tokens(workers: int, auth: bool, told: bool) -> None:
    assert shares_user(Settings(home=Path("nowhere"), auth=auth), workers) is told
