"""
Which addresses a request may not go to: asked when a connection is opened, of the address that
it is opened to. A name is resolved once, for that connection, so that it cannot mean another
address between question and use; redirects open connections like any other request.
"""

import errno
import socket
from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any

from noetl.tools.bounds import Denied

AddressRow = tuple[Any, Any, int, str, tuple[Any, ...]]
"""As getaddrinfo(3) tells an address."""
METADATA = tuple(
    map(
        ip_network,
        ("fd00:ec2::/32", "fd20:ce::/64", "168.63.129.16", "192.0.0.192", "100.100.100.200"),
    )
)
"""Where clouds answer a machine that asks for its own credentials, beside 169.254.169.254."""
NOT_GLOBAL = tuple(
    map(ip_network, ("192.0.0.0/24", "192.88.99.0/24", "64:ff9b:1::/48", "5f00::/16", "fec0::/10"))
)
"""Of no use on the internet (RFC 6890, 7526, 8215, 9602, 3879); Python takes some for global."""
EMBEDDING = tuple(map(ip_network, ("64:ff9b::/96", "64:ff9b:1::/48", "::/96", "::ffff:0:0:0/96")))
"""IPv4 at the end of an address of IPv6: NAT64, the compatible ones of old, translated ones."""
ISATAP = (0x0000_5EFE, 0x0200_5EFE)
"""What stands before IPv4 at the end of an address of a tunnel (RFC 5214)."""


def is_link_local(address: IPv4Address | IPv6Address) -> bool:
    return address.is_link_local or any(address in network for network in METADATA)


def is_private(address: IPv4Address | IPv6Address) -> bool:
    return (
        not address.is_global
        or address.is_multicast
        or is_link_local(address)
        or any(address in network for network in NOT_GLOBAL)
    )


DENIED: dict[Denied, tuple[Callable[[IPv4Address | IPv6Address], bool], str]] = {
    "none": (lambda _: False, ""),
    "link_local": (is_link_local, "is local to the link, where clouds keep credentials"),
    "private": (is_private, "is private or local"),
}


def refused(text: str, denied: Denied) -> str | None:
    """Why a connection to this address is not opened; None where it may be."""
    address = ip_address(text.partition("%")[0])
    is_denied, why = DENIED[denied]
    if any(map(is_denied, meanings_of(address))):
        return f"{address} {why}, which the worker's setting 'http_deny' refuses"
    return None


def meanings_of(address: IPv4Address | IPv6Address) -> list[IPv4Address | IPv6Address]:
    """The address, and those of IPv4 that it may stand for."""
    meant: list[IPv4Address | IPv6Address | None] = [address]
    if isinstance(address, IPv6Address):
        meant += [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
        tunnel = int(address) >> 32 & 0xFFFF_FFFF in ISATAP
        if tunnel or any(address in network for network in EMBEDDING):
            meant.append(IPv4Address(int(address) & 0xFFFF_FFFF))
    return [one for one in meant if one is not None]


def opening(denied: Denied) -> Callable[[AddressRow], socket.socket]:
    """What opens the socket of a connection; raises OSError where it must not be."""

    def opened(row: AddressRow) -> socket.socket:
        family, kind, protocol, _, address = row
        why = refused(str(address[0]), denied)
        if why is not None:
            raise PermissionError(errno.EACCES, why)
        return socket.socket(family, kind, protocol)

    return opened
