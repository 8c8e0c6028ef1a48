"""Integers and strings of bytes as they stand on the wire (PROTO §1.1)."""

MAX_VARINT = 2**62 - 1


class Malformed(Exception):
    """Bytes that this protocol does not allow."""


class Reader:
    """Takes fields from the front of a string of bytes."""

    def __init__(self, data):
        self.data = bytes(data)
        self.at = 0

    def __bool__(self):
        return self.at < len(self.data)

    def take(self, size):
        if size > len(self.data) - self.at:
            raise Malformed("cut off")
        self.at += size
        return self.data[self.at - size : self.at]

    def rest(self):
        return self.take(len(self.data) - self.at)

    def uint(self, size):
        return int.from_bytes(self.take(size), "big")

    def varint(self):
        """A varint of RFC 9000 §16 in its shortest form."""
        first = self.uint(1)
        size = 1 << (first >> 6)
        value = (first & 0x3F) << 8 * (size - 1) | self.uint(size - 1)
        if size > 1 and value < 1 << (4 * size - 2):
            raise Malformed("a varint longer than it has to be")
        return value


def u16(value):
    return value.to_bytes(2, "big")


def u32(value):
    return value.to_bytes(4, "big")


def u64(value):
    return value.to_bytes(8, "big")


def varint(value):
    for code, size in enumerate((1, 2, 4, 8)):
        if value < 1 << (8 * size - 2):
            return (code << (8 * size - 2) | value).to_bytes(size, "big")
    raise ValueError(f"{value} does not fit a varint")
