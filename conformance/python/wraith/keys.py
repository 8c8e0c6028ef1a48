"""From the outputs of the handshake to the keys of packets (PROTO §3.5 to §3.9, §5.15)."""

from dataclasses import dataclass

from blake3 import blake3

from .wire import u16, u32

XCHACHA20_POLY1305 = 1
AES_256_GCM = 2
X25519_GROUP = 1


def derive_key(context, material):
    return blake3(material, derive_key_context=context).digest()


def keyed(key, message):
    return blake3(message, key=key).digest()


def finish_mac_key(k1, k2):
    return derive_key("WRAITH v1 finish mac", k1 + k2)


def first_root(k1, k2, h):
    return derive_key("WRAITH v1 session root", k1 + k2 + h)


def next_root(root, shared, initiator_share, responder_share, epoch):
    """The root of `epoch`, from the one before and the exchange."""
    material = root + shared + initiator_share + responder_share + u32(epoch) + u16(X25519_GROUP)
    return derive_key("WRAITH v1 next root", material)


def exporter(root_0, suite):
    return _key("exporter", root_0, 0, 0, suite)


def header_key(root_0, direction, suite):
    return _key("header protection", root_0, 0, direction, suite)


@dataclass(frozen=True)
class PacketKeys:
    """What seals the packets of one epoch in one direction."""

    suite: int
    key: bytes
    prefix: bytes

    @classmethod
    def of(cls, root, epoch, direction, suite):
        key = _key("packet key", root, epoch, direction, suite)
        return cls(suite, key, _key("nonce prefix", root, epoch, direction, suite)[:16])


def _key(purpose, root, epoch, direction, suite):
    return derive_key(f"WRAITH v1 {purpose}", root + u32(epoch) + bytes([direction]) + u16(suite))
