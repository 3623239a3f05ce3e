"""Which addresses a request may reach, asked where the connection itself is made."""

import errno
import ipaddress
import socket
from typing import Any

AddressRow = tuple[int | socket.AddressFamily, int | socket.SocketKind, int, str, tuple[Any, ...]]
"""One answer of name resolution, as the connector hands it over."""


class AddressDenied(OSError):
    """The address is private, and this tool was told to stay away from those."""

    def __init__(self, address: str) -> None:
        super().__init__(errno.EACCES, f"address {address} is private or local, which is denied")


def is_public(address: str) -> bool:
    """False for loopback, private, link-local, shared, reserved and multicast addresses."""
    parsed = ipaddress.ip_address(address.partition("%")[0])
    hidden = getattr(parsed, "ipv4_mapped", None) or getattr(parsed, "sixtofour", None)
    return bool(parsed.is_global and not parsed.is_multicast) and (
        hidden is None or is_public(str(hidden))
    )


def open_public_socket(row: AddressRow) -> socket.socket:
    """
    The connector's way to make a socket. `row` holds the very address that is connected to, so
    no second resolution can change it, and each redirect passes here again.
    """
    family, kind, protocol, _, place = row
    if not is_public(str(place[0])):
        raise AddressDenied(str(place[0]))
    return socket.socket(family, kind, protocol)
