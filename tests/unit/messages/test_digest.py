"""Whichever module hashes, the name of a playbook stays the same."""

import hashlib

import pytest

from noetl.messages.digest import digest_of_short


@pytest.mark.parametrize("data", [b"", b"a", "größe".encode(), bytes(range(256)) * 500])
def test_it_is_the_digest_that_everybody_means(data: bytes) -> None:
    assert digest_of_short(data) == hashlib.sha256(data).hexdigest()
