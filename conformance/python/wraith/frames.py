"""Frames and their fields (PROTO §6)."""

from dataclasses import dataclass, field

from .packet import split
from .wire import MAX_VARINT, Malformed, Reader, u16, varint

# Types and fields of all frames that are a plain list of fields. `small` is a varint below 2^32, `id` 8 bytes.
LAYOUT = {
    0x00: ("PADDING", ()),
    0x01: ("PING", ()),
    0x04: ("CLOSE", (("code", "small"),)),
    0x05: ("CLOSE_APP", (("code", "small"),)),
    0x06: ("DATAGRAM", (("length", "u16"),)),
    0x08: ("STREAM", (("stream", "small"), ("offset", "varint"), ("length", "u16"))),
    0x09: ("STREAM_FIN", (("stream", "small"), ("offset", "varint"), ("length", "u16"))),
    0x0A: ("RESET_STREAM", (("stream", "small"), ("code", "small"), ("final_size", "varint"))),
    0x0B: ("STOP_SENDING", (("stream", "small"), ("code", "small"))),
    0x0C: ("MAX_STREAM_DATA", (("stream", "small"), ("credit", "varint"))),
    0x0D: ("STREAM_HOLES", (("stream", "small"), ("report", "varint"), ("offset", "varint"), ("length", "varint"))),
    0x0E: ("STREAM_BLOCKED", (("stream", "small"), ("credit", "varint"))),
    0x0F: ("HOLES_TAKEN", (("stream", "small"), ("report", "varint"))),
    0x10: ("MAX_STREAMS_BI", (("count", "varint"),)),
    0x11: ("MAX_STREAMS_UNI", (("count", "varint"),)),
    0x12: ("NEW_CONNECTION_ID", (("sequence", "varint"), ("retire_prior_to", "varint"), ("id", "id"))),
    0x13: ("RETIRE_CONNECTION_ID", (("sequence", "varint"),)),
    0x14: ("AUTHORIZED", ()),
    0x16: ("PATH_CHALLENGE", (("data", "id"),)),
    0x17: ("PATH_RESPONSE", (("data", "id"),)),
}
ACK, ACK_ECN, KEY_SHARE = 0x02, 0x03, 0x15
TYPES = {name: kind for kind, (name, _) in LAYOUT.items()}
EXTENSIONS = range(0x40, 0x4000)
MAX_RANGES = 64
# Frames that ask for no acknowledgement (PROTO §6.1).
SILENT = {"ACK", "ACK_ECN", "CLOSE", "CLOSE_APP", "PADDING"}


@dataclass
class Frame:
    """A frame, and the bytes that it carries if it is one of those in front of the frames (PROTO §5.4)."""

    name: str
    fields: dict = field(default_factory=dict)
    data: bytes = b""

    def __getitem__(self, key):
        return self.fields[key]

    @property
    def asks(self):
        return self.name not in SILENT


def frame(name, data=b"", /, **fields):
    if name in ("DATAGRAM", "STREAM", "STREAM_FIN"):
        fields["length"] = len(data)
    return Frame(name, fields, data)


def encode(item):
    """The bytes of a frame, without its data."""
    if item.name in TYPES:
        kind = TYPES[item.name]
        return varint(kind) + b"".join(_encode_field(item[name], how) for name, how in LAYOUT[kind][1])
    if item.name in ("ACK", "ACK_ECN"):
        return _encode_ack(item)
    if item.name == "KEY_SHARE":
        fixed = [item["group"], item["total"], item["offset"], len(item["piece"])]
        return varint(KEY_SHARE) + varint(item["epoch"]) + b"".join(map(u16, fixed)) + item["piece"]
    return varint(item["type"]) + varint(len(item["body"])) + item["body"]


def decode_packet(body):
    """The frames of a packet's plaintext. Malformed is a violation (PROTO §9.5)."""
    data, frames = split(body)
    items = decode(frames)
    reader = Reader(data)
    for item in items:
        if "length" in item.fields and item.name != "STREAM_HOLES":
            item.data = reader.take(item["length"])
    if reader:
        raise Malformed("bytes that belong to no frame")
    return items


def decode(frames):
    reader = Reader(frames)
    items = []
    while reader:
        items.append(_decode_one(reader))
    return items


def _decode_one(reader):
    kind = reader.varint()
    if kind in LAYOUT:
        name, layout = LAYOUT[kind]
        item = Frame(name, {key: _decode_field(reader, how) for key, how in layout})
        if "offset" in item.fields and item["offset"] + item["length"] > MAX_VARINT:
            raise Malformed("a range beyond the longest stream")
        return item
    if kind in (ACK, ACK_ECN):
        return _decode_ack(reader, kind)
    if kind == KEY_SHARE:
        return _decode_share(reader)
    if kind in EXTENSIONS:
        return Frame("extension", {"type": kind, "body": reader.take(reader.varint())})
    raise Malformed(f"a frame of type {kind:#x}")


def _encode_field(value, how):
    if how == "u16":
        return u16(value)
    return value if how == "id" else varint(value)


def _decode_field(reader, how):
    if how == "u16":
        return reader.uint(2)
    if how == "id":
        return reader.take(8)
    value = reader.varint()
    if how == "small" and value >= 1 << 32:
        raise Malformed("a code or stream of more than 32 bits")
    return value


def _encode_ack(item):
    """Ranges are pairs of the smallest and the largest number, the newest range first (PROTO §6.4)."""
    (smallest, largest), *further = item["ranges"]
    out = [varint(largest), varint(item["delay"]), varint(len(further)), varint(largest - smallest)]
    for low, high in further:
        out += [varint(smallest - high - 2), varint(high - low)]
        smallest = low
    if item.name == "ACK":
        return varint(ACK) + b"".join(out)
    return varint(ACK_ECN) + b"".join(out + [varint(item[count]) for count in ("ect0", "ect1", "ce")])


def _decode_ack(reader, kind):
    high, delay, further = reader.varint(), reader.varint(), reader.varint()
    if further >= MAX_RANGES:
        raise Malformed("an ACK of too many ranges")
    ranges = [(high - reader.varint(), high)]
    for _ in range(further):
        high = ranges[-1][0] - reader.varint() - 2
        ranges.append((high - reader.varint(), high))
    if ranges[-1][0] < 0:
        raise Malformed("an ACK of numbers below zero")
    fields = {"delay": delay, "ranges": ranges}
    if kind == ACK:
        return Frame("ACK", fields)
    return Frame("ACK_ECN", fields | {count: reader.varint() for count in ("ect0", "ect1", "ce")})


def _decode_share(reader):
    epoch = reader.varint()
    group, total, offset, length = (reader.uint(2) for _ in range(4))
    if length == 0 or offset + length > total:
        raise Malformed("a piece that is empty or beyond its share")
    fields = {"epoch": epoch, "group": group, "total": total, "offset": offset}
    return Frame("KEY_SHARE", fields | {"piece": reader.take(length)})
