"""Protected packets, without the state of a session (PROTO §5.1 to §5.7)."""

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from nacl import bindings, exceptions

from .keys import AES_256_GCM
from .wire import Malformed, Reader, u16, u32, u64

# What every path carries (PROTO §2.1).
MIN_DATAGRAM = 1200
HEADER = 13
TAG = 16
SAMPLE = 16
FORM = 0b0100_0000
RESERVED = 0b0000_1100
PHASE = 0b0000_0011
# Bits of the first byte that header protection masks.
MASKED = 0b0001_1111
# What a packet has beside its frames and their data: header, length of the frames, tag.
OVERHEAD = HEADER + 2 + TAG


def nonce(keys, number):
    if keys.suite == AES_256_GCM:
        last = int.from_bytes(keys.prefix[4:12], "big") ^ number
        return keys.prefix[:4] + u64(last)
    return keys.prefix + number.to_bytes(8, "little")


def mask(suite, key, sample):
    """The first five bytes of RFC 9001 §5.4.3 or §5.4.4."""
    if suite == AES_256_GCM:
        return Cipher(algorithms.AES(key), modes.ECB()).encryptor().update(sample)[:5]
    return Cipher(algorithms.ChaCha20(key, sample), None).encryptor().update(bytes(5))


def protect(datagram, suite, key):
    """Puts header protection on or takes it off."""
    bits = mask(suite, key, datagram[HEADER : HEADER + SAMPLE])
    number = bytes(a ^ b for a, b in zip(datagram[9:HEADER], bits[1:], strict=True))
    return bytes([datagram[0] ^ bits[0] & MASKED]) + datagram[1:9] + number + datagram[HEADER:]


def seal(keys, header_key, first, destination, number, body):
    header = bytes([first]) + destination + u32(number & 0xFFFF_FFFF)
    if keys.suite == AES_256_GCM:
        sealed = AESGCM(keys.key).encrypt(nonce(keys, number), body, header)
    else:
        seal_with = bindings.crypto_aead_xchacha20poly1305_ietf_encrypt
        sealed = seal_with(body, header, nonce(keys, number), keys.key)
    return protect(header + sealed, keys.suite, header_key)


def is_packet(datagram):
    """Whether bytes can be a protected packet, by what is visible (PROTO §5.1, §5.2)."""
    return len(datagram) >= OVERHEAD and datagram[0] & ~MASKED == FORM


def open_(keys, number, clear):
    """The plaintext of a packet without header protection; None when its tag is wrong."""
    header, sealed = clear[:HEADER], clear[HEADER:]
    try:
        if keys.suite == AES_256_GCM:
            return AESGCM(keys.key).decrypt(nonce(keys, number), sealed, header)
        open_with = bindings.crypto_aead_xchacha20poly1305_ietf_decrypt
        return open_with(sealed, header, nonce(keys, number), keys.key)
    except (InvalidTag, exceptions.CryptoError):
        return None


def full_number(low, expected):
    """The number nearest to the expected one that ends in these 32 bits (RFC 9000 appendix A.3)."""
    window = 1 << 32
    number = expected & ~(window - 1) | low
    if number <= expected - window // 2 and number < (1 << 62) - window:
        return number + window
    if number > expected + window // 2 and number >= window:
        return number - window
    return number


def join(data, frames):
    """The plaintext: bytes of the data-bearing frames, the frames, their length (PROTO §5.4)."""
    return data + frames + u16(len(frames))


def split(body):
    """The bytes in front of the frames, and the frames."""
    if len(body) < 2:
        raise Malformed("a packet without the length of its frames")
    size = int.from_bytes(body[-2:], "big")
    if size > len(body) - 2:
        raise Malformed("frames longer than their packet")
    reader = Reader(body)
    return reader.take(len(body) - 2 - size), reader.take(size)
