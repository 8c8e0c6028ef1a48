"""The lists of parameters in Noise payloads (PROTO §4.4)."""

from . import identity
from .wire import Malformed, Reader, varint

VERSIONS, FIRST_VERSION, SUITES, PROTOCOLS, INITIATOR_ID, RESPONDER_ID = range(1, 7)
SUITE, PROTOCOL, PEER, INSTANCE, REFUSAL = range(7, 12)
IDLE_TIMEOUT, MAX_DATAGRAM, STREAM_CREDIT, STREAMS_BI, STREAMS_UNI, MAX_ACK_DELAY, ASK = range(16, 23)

TRANSPORT = {IDLE_TIMEOUT, MAX_DATAGRAM, STREAM_CREDIT, STREAMS_BI, STREAMS_UNI, MAX_ACK_DELAY}
KNOWN = TRANSPORT | set(range(1, 12)) | {ASK}
SIZES = {FIRST_VERSION: 4, INITIATOR_ID: 8, RESPONDER_ID: 8, SUITE: 2, PEER: 32, INSTANCE: 16, ASK: 0}
MIN_DATAGRAM = 1200
# Ids from here on are counted; more of them than MAX_HIGH make a list malformed.
HIGH, MAX_HIGH = 64, 32

_EVERY = {VERSIONS, FIRST_VERSION, SUITES, INITIATOR_ID}
_ANSWER = _EVERY | {RESPONDER_ID, PEER, INSTANCE}
_CHOICE = _ANSWER | {SUITE, PROTOCOL} | TRANSPORT
# What must be in a list, and what may be beside it.
COLUMNS = {
    "INIT": (_EVERY | {PROTOCOLS}, set()),
    "RESPONSE": (_CHOICE, {ASK}),
    "refusal": (_ANSWER | {REFUSAL}, TRANSPORT),
    "FINISH": (_CHOICE | {PROTOCOLS}, set()),
}


def encode(values):
    """A list of `(id, value)`."""
    return b"".join(varint(key) + varint(len(value)) + value for key, value in values)


def decode(payload, message):
    """The known parameters of a message, as a dictionary of values; raises Malformed where they are to be refused."""
    values = _read(payload)
    if message == "RESPONSE" and REFUSAL in values:
        message = "refusal"
    must, may = COLUMNS[message]
    known = {key: value for key, value in values.items() if key in KNOWN}
    if not must <= known.keys() <= must | may:
        raise Malformed(f"parameters {sorted(known)} in {message}")
    return {key: _value(key, value) for key, value in known.items()}


def _read(payload):
    reader, values = Reader(payload), {}
    while reader:
        key = reader.varint()
        if key == 0:
            if any(reader.rest()):
                raise Malformed("something behind the end of the parameters")
            break
        if key in values:
            raise Malformed(f"parameter {key} twice")
        values[key] = reader.take(reader.varint())
    if sum(key >= HIGH for key in values) > MAX_HIGH:
        raise Malformed("too many unknown parameters")
    return values


def _value(key, value):
    if key in SIZES and len(value) != SIZES[key]:
        raise Malformed(f"parameter {key} of {len(value)} bytes")
    if key in (VERSIONS, SUITES):
        return _list(key, value)
    if key == PROTOCOLS:
        return _protocols(value)
    if key == PROTOCOL and not 1 <= len(value) <= 32:
        raise Malformed("a protocol of no or too many bytes")
    if key == PEER:
        try:
            return identity.check_peer_id(value)
        except identity.BadPeerId as error:
            raise Malformed(str(error)) from error
    if key in TRANSPORT or key == REFUSAL:
        return _number(key, value)
    return int.from_bytes(value, "big") if key in (FIRST_VERSION, SUITE) else value


def _list(key, value):
    size = 4 if key == VERSIONS else 2
    if not value or len(value) % size:
        raise Malformed(f"parameter {key} of {len(value)} bytes")
    return [int.from_bytes(value[at : at + size], "big") for at in range(0, len(value), size)]


def _number(key, value):
    reader = Reader(value)
    number = reader.varint()
    if reader or (key == MAX_DATAGRAM and number < MIN_DATAGRAM) or (key == REFUSAL and number >= 1 << 32):
        raise Malformed(f"parameter {key} is {value.hex()}")
    return number


def _protocols(value):
    reader, names = Reader(value), []
    while reader:
        names.append(reader.take(reader.uint(1)))
    if not 1 <= len(names) <= 8 or not all(1 <= len(name) <= 32 for name in names):
        raise Malformed("protocols of no or too many bytes, or too many of them")
    return names
