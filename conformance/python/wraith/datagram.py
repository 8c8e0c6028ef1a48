"""Handshake datagrams (PROTO §2.3 to §2.8)."""

from dataclasses import dataclass

from .wire import Malformed, Reader, u16, u32

VERSION = 1
MIN_SIZE = 1200
INIT, RESPONSE, FINISH, COOKIE, VERSIONS = range(1, 6)
# What an INIT has in front of its Noise message.
INIT_HEADER = 41
NO_ID = bytes(8)
NO_COOKIE = bytes(16)


@dataclass
class Handshake:
    """The header that all types share, and what follows it."""

    kind: int
    version: int
    destination: bytes
    source: bytes
    rest: bytes


def encode(kind, destination, source, rest, version=VERSION):
    return bytes([0x80 | kind]) + u32(version) + destination + source + rest


def init(source, message, cookie=NO_COOKIE, version=VERSION):
    return encode(INIT, NO_ID, source, cookie + _whole(message), version)


def finish(destination, source, message):
    """FINISH without its outer MAC."""
    return encode(FINISH, destination, source, _whole(message))


def decode(datagram):
    """Reads the header; raises Malformed for what has to be dropped whatever it says (PROTO §2.8)."""
    reader = Reader(datagram)
    kind = reader.uint(1) ^ 0x80
    if kind not in range(INIT, VERSIONS + 1):
        raise Malformed("no type of handshake datagram")
    parsed = Handshake(kind, reader.uint(4), reader.take(8), reader.take(8), reader.rest())
    stateless = kind in (COOKIE, VERSIONS)
    if (kind == INIT and parsed.destination != NO_ID) or (stateless and parsed.source != NO_ID):
        raise Malformed("an id where none may be")
    if parsed.version != (0 if kind == VERSIONS else VERSION):
        raise Malformed("another version")
    return parsed


def response_message(parsed):
    """The Noise message of a RESPONSE."""
    reader = Reader(parsed.rest)
    offset, total = reader.uint(2), reader.uint(2)
    message = reader.rest()
    if offset or total != len(message) or 25 + len(message) < MIN_SIZE:
        raise Malformed("a RESPONSE that is split, cut off or too short")
    return message


def cookie(parsed):
    if len(parsed.rest) != 16:
        raise Malformed("a COOKIE of another size")
    return parsed.rest


def versions(parsed):
    if not parsed.rest or len(parsed.rest) % 4:
        raise Malformed("a list of versions that is empty or cut off")
    return [int.from_bytes(parsed.rest[at : at + 4], "big") for at in range(0, len(parsed.rest), 4)]


def _whole(message):
    return u16(0) + u16(len(message)) + message
