"""Noise revision 34: the initiator of XX, and both ends of X, with `Split()` where WRAITH asks for it."""

import hashlib
import hmac

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from .identity import x25519, x25519_public
from .wire import Malformed

XX = b"Noise_XX_25519_ChaChaPoly_BLAKE2s"
X = b"Noise_X_25519_ChaChaPoly_BLAKE2s"
TAG = 16


def hkdf2(chaining_key, material):
    """Noise §4.3: two outputs."""
    temp = _hmac(chaining_key, material)
    first = _hmac(temp, b"\x01")
    return first, _hmac(temp, first + b"\x02")


def _hmac(key, message):
    return hmac.new(key, message, hashlib.blake2s).digest()


class Symmetric:
    """Noise's SymmetricState."""

    def __init__(self, name, prologue):
        # Noise §5.2: a name that fits is not hashed.
        self.h = name.ljust(32, b"\x00") if len(name) <= 32 else hashlib.blake2s(name).digest()
        self.ck = self.h
        self.key = None
        self.nonce = 0
        self.mix_hash(prologue)

    def mix_hash(self, data):
        self.h = hashlib.blake2s(self.h + data).digest()

    def mix_key(self, material):
        self.ck, self.key = hkdf2(self.ck, material)
        self.nonce = 0

    def mix_dh(self, secret, public):
        try:
            self.mix_key(x25519(secret, public))
        except ValueError as error:
            raise Malformed("an X25519 result of zero") from error

    def encrypt(self, plaintext):
        ciphertext = plaintext
        if self.key:
            ciphertext = ChaCha20Poly1305(self.key).encrypt(self._nonce(), plaintext, self.h)
        self.mix_hash(ciphertext)
        return ciphertext

    def decrypt(self, ciphertext):
        plaintext = ciphertext
        if self.key:
            try:
                plaintext = ChaCha20Poly1305(self.key).decrypt(self._nonce(), ciphertext, self.h)
            except InvalidTag as error:
                raise Malformed("a Noise message that does not open") from error
        self.mix_hash(ciphertext)
        return plaintext

    def split(self):
        return hkdf2(self.ck, b"")

    def _nonce(self):
        self.nonce += 1
        return bytes(4) + (self.nonce - 1).to_bytes(8, "little")


class Initiator:
    """The three messages of XX from the side that dials. `copy.copy` twice keeps a state to go back to."""

    def __init__(self, prologue, static_secret, ephemeral_secret):
        self.state = Symmetric(XX, prologue)
        self.static_secret = static_secret
        self.ephemeral_secret = ephemeral_secret
        self.remote_ephemeral = None
        self.remote_static = None

    def write_first(self, payload):
        ephemeral = x25519_public(self.ephemeral_secret)
        self.state.mix_hash(ephemeral)
        return ephemeral + self.state.encrypt(payload)

    def read_second(self, message):
        if len(message) < 32 + 32 + TAG + TAG:
            raise Malformed("a Noise message that is cut off")
        self.remote_ephemeral = message[:32]
        self.state.mix_hash(self.remote_ephemeral)
        self.state.mix_dh(self.ephemeral_secret, self.remote_ephemeral)
        self.remote_static = self.state.decrypt(message[32 : 64 + TAG])
        self.state.mix_dh(self.ephemeral_secret, self.remote_static)
        return self.state.decrypt(message[64 + TAG :])

    def write_third(self, payload):
        static = self.state.encrypt(x25519_public(self.static_secret))
        self.state.mix_dh(self.static_secret, self.remote_ephemeral)
        return static + self.state.encrypt(payload)


def write_x(prologue, static_secret, ephemeral_secret, recipient, payload):
    """The one message of X to a static key, and the state behind it."""
    state = Symmetric(X, prologue)
    state.mix_hash(recipient)
    ephemeral = x25519_public(ephemeral_secret)
    state.mix_hash(ephemeral)
    state.mix_dh(ephemeral_secret, recipient)
    static = state.encrypt(x25519_public(static_secret))
    state.mix_dh(static_secret, recipient)
    return ephemeral + static + state.encrypt(payload), state


def read_x(prologue, static_secret, message):
    """The payload of a message of X, the sender's static key, and the state behind it."""
    if len(message) < 32 + 32 + TAG + TAG:
        raise Malformed("a Noise message that is cut off")
    state = Symmetric(X, prologue)
    state.mix_hash(x25519_public(static_secret))
    ephemeral = message[:32]
    state.mix_hash(ephemeral)
    state.mix_dh(static_secret, ephemeral)
    sender = state.decrypt(message[32 : 64 + TAG])
    state.mix_dh(static_secret, sender)
    return state.decrypt(message[64 + TAG :]), sender, state
