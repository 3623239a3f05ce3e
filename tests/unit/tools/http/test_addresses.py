"""Which addresses a request may not go to."""

import pytest

from noetl.tools.bounds import Denied
from noetl.tools.http.addresses import refused

ADDRESSES = {
    "8.8.8.8": "none",
    "2606:4700::1111": "none",
    **dict.fromkeys(("169.254.169.254", "fe80::1%eth0", "fd00:ec2::254"), "link_local"),
    **dict.fromkeys(("::ffff:169.254.169.254", "2002:a9fe:a9fe::"), "link_local"),
    **dict.fromkeys(("64:ff9b::a9fe:a9fe", "::169.254.169.254"), "link_local"),
    **dict.fromkeys(("192.0.0.192", "100.100.100.200"), "link_local"),
    **dict.fromkeys(("168.63.129.16", "fd20:ce::254", "64:ff9b:1::a9fe:a9fe"), "link_local"),
    **dict.fromkeys(
        ("::ffff:0:a9fe:a9fe", "2001:0:a9fe:a9fe::", "2600::5efe:a9fe:a9fe"), "link_local"
    ),
    **dict.fromkeys(
        ("fec0::1", "5f00::1", "192.88.99.1", "64:ff9b:1::", "::ffff:0:7f00:1"), "private"
    ),
    **dict.fromkeys(("127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.0.1"), "private"),
    **dict.fromkeys(("100.64.0.1", "0.0.0.0", "224.0.0.1", "::1", "fd00::1"), "private"),
    **dict.fromkeys(("::ffff:127.0.0.1", "2002:7f00:1::", "192.0.0.8", "::10.0.0.1"), "private"),
}
"""An address, and the first word that denies it."""


@pytest.mark.parametrize("address", ADDRESSES)
def test_which_addresses_are_denied(address: str) -> None:
    words: list[Denied] = ["link_local", "private"]
    denied = [word for word in words if refused(address, word) is not None]
    first = ADDRESSES[address]
    assert denied == (words[words.index(first) :] if first in words else [])
