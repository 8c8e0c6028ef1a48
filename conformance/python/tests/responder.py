"""The other end of a dial, for tests: it answers with whatever parameters it is told."""

from wraith import datagram, keys, parameters
from wraith.dial import DEFAULTS, PROLOGUE
from wraith.identity import Identity, x25519, x25519_public
from wraith.noise import XX, Symmetric
from wraith.wire import u16, u32, varint

OWN_ID = bytes(range(8))
EPHEMERAL = b"\x55" * 32


class Responder:
    def __init__(self, seed=b"\x01" * 32):
        self.who = Identity(seed)
        self.state = Symmetric(XX, PROLOGUE)
        self.remote_ephemeral = None
        self.remote_static = None

    def answer(self, init, changes=None, without=(), outer_id=OWN_ID, size=datagram.MIN_SIZE):
        """RESPONSE to an INIT; `changes` are values in place of those that belong there."""
        source, message = init[13:21], init[41:]
        values = parameters.decode(message[32:], "INIT")
        answer = {
            parameters.VERSIONS: u32(1),
            parameters.FIRST_VERSION: u32(values[parameters.FIRST_VERSION]),
            parameters.SUITES: u16(1),
            parameters.INITIATOR_ID: source,
            parameters.RESPONDER_ID: OWN_ID,
            parameters.SUITE: u16(1),
            parameters.PROTOCOL: values[parameters.PROTOCOLS][0],
            parameters.PEER: self.who.peer_id,
            parameters.INSTANCE: bytes(16),
        }
        answer |= {key: varint(value) for key, value in DEFAULTS.items()} | (changes or {})
        payload = parameters.encode((key, value) for key, value in answer.items() if key not in without)
        message = self._second(message, payload.ljust(size - 25 - 96, b"\x00"))
        return datagram.encode(datagram.RESPONSE, source, outer_id, u16(0) + u16(len(message)) + message)

    def take(self, finish):
        """The parameters of a FINISH whose MAC is right, and `root_0`."""
        size = 25 + int.from_bytes(finish[23:25], "big")
        mac_key = keys.finish_mac_key(*self.state.split())
        assert finish[size : size + 16] == keys.keyed(mac_key, finish[:size])[:16]
        self.remote_static = self.state.decrypt(finish[25:73])
        self.state.mix_key(x25519(EPHEMERAL, self.remote_static))
        values = parameters.decode(self.state.decrypt(finish[73:size]), "FINISH")
        return values, keys.first_root(*self.state.split(), self.state.h)

    def _second(self, first, payload):
        state = self.state
        self.remote_ephemeral = first[:32]
        state.mix_hash(self.remote_ephemeral)
        state.decrypt(first[32:])
        state.mix_hash(x25519_public(EPHEMERAL))
        state.mix_key(x25519(EPHEMERAL, self.remote_ephemeral))
        static = state.encrypt(self.who.static_public)
        state.mix_key(x25519(self.who.static_secret, self.remote_ephemeral))
        return x25519_public(EPHEMERAL) + static + state.encrypt(payload)
