"""Identities and PeerIds (PROTO §3.1 to §3.3)."""

import base64
import os

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from nacl import bindings, exceptions, signing


class BadPeerId(ValueError):
    """Not a PeerId."""


class Identity:
    """An Ed25519 seed, and what follows from it."""

    def __init__(self, seed=None):
        self.seed = seed or os.urandom(32)
        self.peer_id, secret = bindings.crypto_sign_seed_keypair(self.seed)
        self.static_secret = bindings.crypto_sign_ed25519_sk_to_curve25519(secret)
        self.static_public = static_public(self.peer_id)

    def sign(self, text):
        return signing.SigningKey(self.seed).sign(text).signature


def verifies(peer_id, signature, text):
    """Whether a signature is good: without the cofactor, and with no R of small order (PROTO §12.9)."""
    try:
        signing.VerifyKey(peer_id).verify(text, signature)
    except exceptions.BadSignatureError:
        return False
    return True


def check_peer_id(peer_id):
    """Refuses all but canonical points of the prime order subgroup (PROTO §3.2)."""
    if len(peer_id) != 32 or not bindings.crypto_core_ed25519_is_valid_point(peer_id):
        raise BadPeerId("not the encoding of a point of the prime order subgroup")
    return peer_id


def static_public(peer_id):
    """The X25519 form of a PeerId."""
    return bindings.crypto_sign_ed25519_pk_to_curve25519(check_peer_id(peer_id))


def to_text(peer_id):
    return base64.b32encode(peer_id).decode().rstrip("=").lower()


def from_text(text):
    """Reads what `to_text` writes, and nothing that only decodes to the same bytes."""
    try:
        peer_id = base64.b32decode(text.upper() + "====")
    except ValueError as error:
        raise BadPeerId(f"not base32: {text}") from error
    if to_text(peer_id) != text:
        raise BadPeerId(f"another spelling of a PeerId: {text}")
    return check_peer_id(peer_id)


def x25519_public(secret):
    return X25519PrivateKey.from_private_bytes(secret).public_key().public_bytes_raw()


def x25519(secret, public):
    """The shared secret. The library raises ValueError when it is zero, as PROTO §3.3 wants."""
    return X25519PrivateKey.from_private_bytes(secret).exchange(X25519PublicKey.from_public_bytes(public))
