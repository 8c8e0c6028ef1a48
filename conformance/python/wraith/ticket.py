"""Tickets (PROTO §11)."""

import base64
import ipaddress
import unicodedata
from dataclasses import dataclass

from . import identity
from .keys import derive_key
from .wire import Malformed, Reader, u16, varint

PREFIX = "wraith1"
LARGEST = 1 << 60


@dataclass(frozen=True)
class Ticket:
    """What a ticket says; `addresses` are pairs of an IP address and a port."""

    kind: int
    content: bytes
    size: int
    name: str
    peer: bytes
    token: bytes
    addresses: tuple

    def __str__(self):
        fields = bytes([1, self.kind]) + self.content + varint(self.size)
        fields += bytes([len(self.name.encode())]) + self.name.encode() + self.peer + self.token
        fields += bytes([len(self.addresses)])
        for address, port in self.addresses:
            fields += bytes([address.version]) + address.packed + u16(port)
        return PREFIX + _base32(fields + checksum(fields))


def read(text):
    """Reads a ticket; raises Malformed for every text but the one of its fields (PROTO §11.3)."""
    if not text.startswith(PREFIX):
        raise Malformed("no ticket")
    text = text.removeprefix(PREFIX)
    try:
        data = base64.b32decode(text.upper() + "=" * (-len(text) % 8))
    except ValueError as error:
        raise Malformed("not base32") from error
    if _base32(data) != text or len(data) < 4 or checksum(data[:-4]) != data[-4:]:
        raise Malformed("a wrong checksum, or another text of the same ticket")
    reader = Reader(data[:-4])
    if reader.uint(1) != 1:
        raise Malformed("another version of tickets")
    kind, content, size = reader.uint(1), reader.take(32), reader.varint()
    name = _name(reader.take(reader.uint(1)))
    peer, token = _peer(reader.take(32)), reader.take(16)
    count = reader.uint(1)
    addresses = tuple(_address(reader) for _ in range(min(count, 9)))
    if reader or kind > 1 or size > LARGEST or count > 8:
        raise Malformed("a field that no ticket has")
    return Ticket(kind, content, size, name, peer, token, addresses)


def checksum(fields):
    return derive_key("WRAITH v1 ticket checksum", fields)[:4]


def _base32(data):
    return base64.b32encode(data).decode().rstrip("=").lower()


def _peer(peer_id):
    try:
        return identity.check_peer_id(peer_id)
    except identity.BadPeerId as error:
        raise Malformed(str(error)) from error


def _name(data):
    try:
        name = data.decode()
    except UnicodeDecodeError as error:
        raise Malformed("a name that is no UTF-8") from error
    controls = any(unicodedata.category(character) == "Cc" for character in name)
    if name in ("", ".", "..") or "/" in name or "\\" in name or controls:
        raise Malformed("a name that is no path component")
    return name


def _address(reader):
    version = reader.uint(1)
    if version not in (4, 6):
        raise Malformed("no version of IP")
    address, port = ipaddress.ip_address(reader.take(4 if version == 4 else 16)), reader.uint(2)
    mapped = version == 6 and address.ipv4_mapped is not None
    broadcast = address == ipaddress.IPv4Address(0xFFFF_FFFF)
    if port == 0 or address.is_unspecified or address.is_multicast or mapped or broadcast:
        raise Malformed("an address that no peer can have")
    return address, port
