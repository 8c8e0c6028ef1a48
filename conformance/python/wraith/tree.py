"""Parents in the BLAKE3 tree, which the library does not have: they check lists of chaining values (PROTO §10.4)."""

import functools
import struct

CHUNK = 1 << 20
IV = (
    0x6A09E667,
    0xBB67AE85,
    0x3C6EF372,
    0xA54FF53A,
    0x510E527F,
    0x9B05688C,
    0x1F83D9AB,
    0x5BE0CD19,
)
PERMUTATION = (2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8)
COLUMNS = ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15))
DIAGONALS = ((0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14))
PARENT, ROOT = 4, 8


def combine(values, root):
    """The value above these; with the flag of the root it is the hash. A single value stands for itself."""
    if len(values) == 1:
        return values[0]
    left = 1 << (len(values) - 1).bit_length() - 1
    return parent(combine(values[:left], False), combine(values[left:], False), root)


def parent(left, right, root):
    words = struct.unpack("<16I", left + right)
    state = [*IV, *IV[:4], 0, 0, 64, PARENT | (ROOT if root else 0)]
    for _ in range(7):
        for at, places in enumerate(COLUMNS + DIAGONALS):
            _mix(state, *places, words[2 * at], words[2 * at + 1])
        words = [words[place] for place in PERMUTATION]
    return struct.pack("<8I", *(state[at] ^ state[at + 8] for at in range(8)))


def _mix(state, a, b, c, d, *message):
    for word, (first, second) in zip(message, ((16, 12), (8, 7)), strict=True):
        state[a] = _sum(state[a], state[b], word)
        state[d] = _rotate(state[d] ^ state[a], first)
        state[c] = _sum(state[c], state[d])
        state[b] = _rotate(state[b] ^ state[c], second)


def _sum(*words):
    return functools.reduce(int.__add__, words) & 0xFFFF_FFFF


def _rotate(word, bits):
    return (word >> bits | word << 32 - bits) & 0xFFFF_FFFF
