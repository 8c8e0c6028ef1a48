"""Messages of file transfer, and a receiver of one file at a time (PROTO §10)."""

from dataclasses import dataclass

from blake3 import blake3

from .ticket import LARGEST
from .tree import CHUNK, combine
from .wire import Malformed, Reader, u32, u64, varint

PROTOCOL = b"wraith-transfer/1"
GET, OFFER, GET_LIST, LIST, WANT, DONE, DONE_ACK, REFUSED, CANCEL = range(1, 10)
VALUES = 1024
# Codes of CLOSE_APP (PROTO §10.15), and of a transfer that ends (PROTO §10.14).
BAD_LENGTH, BAD_MESSAGE, BAD_TYPE, BAD_SIDE, BAD_NUMBER = range(0x101, 0x106)
UNASKED = 0x108
BAD_CHUNK, BAD_LIST, BAD_DELIVERY = 3, 4, 8
WANTED_AT_ONCE = 8


class Violation(Exception):
    """What closes the session; `code` says with what."""

    def __init__(self, code, what):
        super().__init__(what)
        self.code = code


class Failed(Exception):
    """The transfer has ended without the file."""


@dataclass(frozen=True)
class Message:
    """A message; `body` is what stands behind the transfer number."""

    kind: int
    transfer: int
    body: bytes = b""

    def encode(self):
        text = bytes([self.kind]) + varint(self.transfer) + self.body
        return varint(len(text)) + text


def get(transfer, kind, content, token):
    return Message(GET, transfer, bytes([kind]) + content + token)


def want(transfer, chunks):
    """Names chunks that lie within 256 of each other."""
    first, vector = min(chunks), bytearray((max(chunks) - min(chunks)) // 8 + 1)
    for chunk in chunks:
        vector[(chunk - first) // 8] |= 1 << (chunk - first) % 8
    return Message(WANT, transfer, varint(first) + bytes(vector))


class Messages:
    """Takes messages out of the bytes of a stream."""

    def __init__(self):
        self.buffer = b""

    def take(self, data):
        self.buffer += data
        found = []
        while text := self._next():
            # Types from here on are for later versions.
            if text[0] < 0x40:
                found.append(read(text))
        return found

    def _next(self):
        size = 1 << (self.buffer[0] >> 6) if self.buffer else 1
        if size == 8:
            raise Violation(BAD_LENGTH, "a length of eight bytes")
        if len(self.buffer) < size:
            return None
        length = _or(BAD_MESSAGE, Reader(self.buffer[:size]).varint)
        if not 1 <= length <= 65_536:
            raise Violation(BAD_LENGTH, f"a message of {length} bytes")
        if len(self.buffer) < size + length:
            return None
        text, self.buffer = self.buffer[size : size + length], self.buffer[size + length :]
        return text


def read(text):
    """A message without its length, checked by its type."""
    if not text:
        raise Violation(BAD_LENGTH, "a message without a type")
    if text[0] not in CHECKS:
        raise Violation(BAD_TYPE, f"a message of type {text[0]}")
    reader = Reader(text[1:])
    message = Message(text[0], _or(BAD_MESSAGE, lambda: _small(reader)), reader.rest())
    _or(BAD_MESSAGE, lambda: CHECKS[message.kind](message.body))
    return message


def offer(body):
    """The size, whether the source is complete, and the top list."""
    reader = Reader(body)
    size, complete, values = reader.varint(), reader.uint(1), _values(reader.rest())
    level, chunks = 1, -(-size // CHUNK)
    count = chunks
    while count > VALUES:
        level, count = level + 1, -(-count // VALUES)
    if size > LARGEST or complete > 1 or len(values) != (0 if chunks <= 1 else count):
        raise Malformed("an Offer that cannot be")
    return size, complete, values


class Fetch:
    """Fetches one content over a client's session."""

    def __init__(self, client, ticket):
        self.client, self.ticket = client, ticket
        self.control = client.session.open()
        self.messages, self.offered = Messages(), None
        self.deliveries, self.chunks = {}, {}
        self.said = set()

    def run(self, seconds=30.0):
        """The content, verified and confirmed."""
        try:
            self._say(get(1, self.ticket.kind, self.ticket.content, self.ticket.token))
            self._until(lambda: self.offered, seconds)
            size, _, values = self.offered
            if (size == 0) != (self.ticket.content == blake3(b"").digest()):
                self._cancel(5, "another size than the content has")
            if values and combine(values, True) != self.ticket.content:
                self._cancel(BAD_LIST, "a list that does not lead to the content")
            self._want_all(-(-size // CHUNK), seconds)
            content = b"".join(self.chunks[chunk] for chunk in sorted(self.chunks))
            # A chunk by itself could be checked by its value in the list; nothing of it is used before this.
            if blake3(content).digest() != self.ticket.content:
                self._cancel(BAD_CHUNK, "a chunk that does not match")
            self._say(Message(DONE, 1, self.ticket.content))
            self._until(lambda: DONE_ACK in self.said, seconds)
        except Violation as error:
            self.client.close(error.code)
            raise Failed(str(error)) from error
        self.client.close(0)
        return content

    def _want_all(self, count, seconds):
        # The last chunk proves the size (PROTO §10.9).
        order = [count - 1, *range(count - 1)] if count else []
        for at in range(0, count, WANTED_AT_ONCE):
            for chunk in order[at : at + WANTED_AT_ONCE]:
                self._say(want(1, [chunk]))
            wanted = set(order[: at + WANTED_AT_ONCE])
            self._until(lambda wanted=wanted: wanted <= self.chunks.keys(), seconds)

    def _say(self, message):
        self.client.session.write(self.control, message.encode())

    def _until(self, done, seconds):
        def ready():
            while self.client.session.events:
                self._on_event(*self.client.session.events.popleft())
            return done()

        self.client.wait(ready, seconds)

    def _on_event(self, kind, *what):
        if kind == "closed":
            raise Failed(f"the provider closed the session: {what}")
        if kind == "reset":
            self._cancel(BAD_DELIVERY, "a delivery was reset")
        if kind != "stream":
            return
        stream, data, ends = what
        if stream != self.control:
            self._on_delivery(stream, data, ends)
            return
        for message in self.messages.take(data):
            self._on_message(message)

    def _on_message(self, message):
        if message.kind in (GET, GET_LIST, WANT, DONE):
            raise Violation(BAD_SIDE, "a message of a receiver")
        if message.transfer != 1:
            raise Violation(BAD_NUMBER, "a transfer that was never begun")
        if message.kind in (REFUSED, CANCEL):
            self.client.close(0)
            raise Failed(f"the provider ends the transfer with code {Reader(message.body).varint()}")
        if message.kind == LIST or message.kind in self.said:
            raise Violation(UNASKED, "an answer that nobody asked for")
        self.said.add(message.kind)
        if message.kind == OFFER:
            self.offered = offer(message.body)

    def _on_delivery(self, stream, data, ends):
        delivery = self.deliveries.setdefault(stream, bytearray())
        delivery += data
        if not ends:
            return
        reader = Reader(self.deliveries.pop(stream))
        try:
            transfer, length, chunk = reader.uint(4), reader.uint(4), reader.uint(8)
        except Malformed:
            self._cancel(BAD_DELIVERY, "a delivery that ends within its header")
        size = self.offered[0] if self.offered else 0
        whole = min(CHUNK, size - chunk * CHUNK)
        if transfer != 1 or length != whole or len(delivery) != 16 + length:
            self._cancel(BAD_DELIVERY, "a delivery of another length than its chunk")
        self.chunks[chunk] = reader.rest()

    def _cancel(self, code, what):
        self._say(Message(CANCEL, 1, varint(code)))
        self.client.turn(0.0)
        self.client.close(0)
        raise Failed(what)


def delivery_header(transfer, length, chunk):
    return u32(transfer) + u32(length) + u64(chunk)


def _values(data):
    if len(data) % 32:
        raise Malformed("a part of a value")
    return [data[at : at + 32] for at in range(0, len(data), 32)]


def _small(reader):
    value = reader.varint()
    if value >= 1 << 32:
        raise Malformed("a number of more than 32 bits")
    return value


def _level(reader):
    if not 1 <= reader.uint(1) <= 4:
        raise Malformed("a level that no list has")
    reader.varint()


def _check_list(body):
    reader = Reader(body)
    _level(reader)
    if not 1 <= len(_values(reader.rest())) <= VALUES:
        raise Malformed("a list of no or too many values")


def _check_want(body):
    reader = Reader(body)
    reader.varint()
    vector = reader.rest()
    if not 1 <= len(vector) <= 32 or not vector[0] & 1 or not vector[-1]:
        raise Malformed("a vector that is not the shortest")


def _check(*steps):
    """A body of exactly these fields."""

    def check(body):
        reader = Reader(body)
        for step in steps:
            step(reader)
        if reader:
            raise Malformed("a body that is too long")

    return check


def _check_kind(reader):
    if reader.uint(1) > 1:
        raise Malformed("an unknown kind")


def _bytes(size):
    return lambda reader: reader.take(size)


CHECKS = {
    GET: _check(_check_kind, _bytes(48)),
    OFFER: offer,
    GET_LIST: _check(_level),
    LIST: _check_list,
    WANT: _check_want,
    DONE: _check(_bytes(32)),
    DONE_ACK: _check(),
    REFUSED: _check(_small),
    CANCEL: _check(_small),
}


def _or(code, read_it):
    try:
        return read_it()
    except Malformed as error:
        raise Violation(code, str(error)) from error
