"""Messages to a PeerId without a session (PROTO §12)."""

import os
import time
from dataclasses import dataclass

from blake3 import blake3
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from . import datagram, identity, keys, noise
from .wire import Malformed, Reader, u32, u64

DATAGRAM = b"\x61"
MESSAGE = b"WRAITHS\x01"
FIELDS, SIGNATURE, TAG = 57, 64, 16
# Bytes of a Noise message around its payload.
NOISE = 32 + 32 + TAG + TAG
HEAD = len(MESSAGE) + NOISE + FIELDS
SEGMENT, LAST = 1 << 16, 1 << 31
SIGNED = 1


class Forged(Malformed):
    """A message that has to be refused."""


@dataclass(frozen=True)
class Fields:
    """What a message says of itself."""

    sender: bytes
    id: bytes
    time: int
    flags: int

    @classmethod
    def fresh(cls, who, signed):
        return cls(who.peer_id, os.urandom(16), int(time.time() * 1000), SIGNED if signed else 0)

    @property
    def signed(self):
        return self.flags == SIGNED

    def encode(self):
        return self.sender + self.id + u64(self.time) + bytes([self.flags])

    def signed_text(self, recipient, body_hash):
        """What the signature is of (PROTO §12.9)."""
        return b"WRAITH v1 sealed\x00" + self.sender + recipient + self.id + u64(self.time) + body_hash


def seal_datagram(who, recipient, body, sign=False, fields=None, fresh=None):
    """A sealed datagram; `fields` and the 32 random bytes `fresh` are drawn where they are not given."""
    fields = fields or Fields.fresh(who, sign)
    signature = who.sign(fields.signed_text(recipient, _hash(body))) if fields.signed else b""
    payload = fields.encode() + signature + body
    message, _ = _write(who, recipient, DATAGRAM, fields, payload, body, fresh)
    return DATAGRAM + message


def open_datagram(who, sealed):
    """The fields and the body."""
    if sealed[:1] != DATAGRAM:
        raise Forged("no sealed datagram")
    fields, reader, _ = _read(who, DATAGRAM, sealed[1:])
    signature = reader.take(SIGNATURE) if fields.signed else None
    body = reader.rest()
    if signature is not None:
        _verify(who, fields, signature, _hash(body))
    return fields, body


def seal_message(who, recipient, source, sign=False, fields=None, fresh=None):
    """The head and the segments of a message, whose body is read from a file."""
    fields = fields or Fields.fresh(who, sign)
    body, body_hash = source.read(SEGMENT), blake3()
    message, state = _write(who, recipient, MESSAGE, fields, fields.encode(), body, fresh)
    yield MESSAGE + message
    cipher = _segment_cipher(state)
    number, last = 0, False
    while not last:
        following = source.read(SEGMENT) if len(body) == SEGMENT else b""
        last = not following
        body_hash.update(body)
        header = u32(len(body) | (LAST if last else 0))
        if last and fields.signed:
            signature = who.sign(fields.signed_text(recipient, body_hash.digest()))
            yield header + cipher.encrypt(_nonce(number, last), body + signature, header)
        else:
            yield header + cipher.encrypt(_nonce(number, last), body, header)
        body, number = following, number + 1


class Opener:
    """Opens a message that is read from a file; `fields` are there at once."""

    def __init__(self, who, source):
        self.who, self.source = who, source
        head = source.read(HEAD)
        if len(head) < HEAD or not head.startswith(MESSAGE):
            raise Forged("no sealed message")
        self.fields, _, state = _read(who, MESSAGE, head[len(MESSAGE) :])
        self.cipher = _segment_cipher(state)

    def segments(self):
        """The body, piece by piece; raises Forged where it does not go on as it was sealed."""
        body_hash = blake3()
        number, last = 0, False
        while not last:
            header = self._exactly(4)
            last, size = bool(header[0] & 0x80), int.from_bytes(header, "big") & (LAST - 1)
            if size > SEGMENT or (size < SEGMENT and not last):
                raise Forged("a segment of a wrong length")
            ends = SIGNATURE if last and self.fields.signed else 0
            sealed = self._exactly(size + ends + TAG)
            try:
                opened = self.cipher.decrypt(_nonce(number, last), sealed, header)
            except InvalidTag as error:
                raise Forged("a segment that does not open") from error
            body_hash.update(opened[:size])
            if last:
                self._finish(opened[size:], body_hash.digest())
            yield opened[:size]
            number += 1

    def _finish(self, signature, body_hash):
        if self.source.read(1):
            raise Forged("bytes behind the last segment")
        if self.fields.signed:
            _verify(self.who, self.fields, signature, body_hash)

    def _exactly(self, size):
        data = self.source.read(size)
        if len(data) < size:
            raise Forged("a message that is cut off")
        return data


def ephemeral(who, recipient, prefix, fields, body, fresh):
    """The ephemeral secret, hedged against randomness that repeats (PROTO §12.10)."""
    return keys.derive_key(
        "WRAITH v1 sealed ephemeral", fresh + who.seed + recipient + _hash(prefix + fields.encode() + body)
    )


def _write(who, recipient, prefix, fields, payload, body, fresh):
    secret = ephemeral(who, recipient, prefix, fields, body, fresh or os.urandom(32))
    to = identity.static_public(recipient)
    return noise.write_x(_prologue(prefix, recipient), who.static_secret, secret, to, payload)


def _read(who, prefix, message):
    """The fields, what follows them in the payload, and the Noise state."""
    payload, static, state = noise.read_x(_prologue(prefix, who.peer_id), who.static_secret, message)
    reader = Reader(payload)
    fields = Fields(reader.take(32), reader.take(16), reader.uint(8), reader.uint(1))
    if fields.flags & ~SIGNED:
        raise Forged("an unknown flag")
    try:
        if identity.static_public(fields.sender) != static:
            raise Forged("a PeerId with the key of another")
    except identity.BadPeerId as error:
        raise Forged(str(error)) from error
    return fields, reader, state


def _prologue(prefix, recipient):
    return b"WRAITH" + u32(datagram.VERSION) + prefix + recipient


def _segment_cipher(state):
    return ChaCha20Poly1305(keys.derive_key("WRAITH v1 sealed segments", b"".join(state.split()) + state.h))


def _nonce(number, last):
    return bytes(4) + (2 * number + last).to_bytes(8, "little")


def _verify(who, fields, signature, body_hash):
    if not identity.verifies(fields.sender, signature, fields.signed_text(who.peer_id, body_hash)):
        raise Forged("a signature that does not verify")


def _hash(data):
    return blake3(data).digest()
