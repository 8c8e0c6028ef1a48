"""A handshake from the side that dials, without sockets and clocks (PROTO §4). Times are seconds."""

import copy
import os
from dataclasses import dataclass

from . import datagram, identity, keys, noise, parameters
from .parameters import TRANSPORT
from .wire import Malformed, u16, u32, varint

PROLOGUE = b"WRAITH" + u32(datagram.VERSION)
FIRST_REPEAT, LAST_REPEAT = 0.25, 1.0
# Cookies that are sent back at once, answers of other PeerIds to one INIT that are read, and how long the right one may
# take behind the first of those, or behind a list of versions (PROTO §4.13, §4.16, §4.19).
COOKIES_AT_ONCE = 4
IMPOSTORS, IMPOSTOR_WAIT = 4, 1.0
DEFAULTS = {
    parameters.IDLE_TIMEOUT: 30_000,
    parameters.MAX_DATAGRAM: 1472,
    parameters.STREAM_CREDIT: 1 << 20,
    parameters.STREAMS_BI: 16,
    parameters.STREAMS_UNI: 16,
    parameters.MAX_ACK_DELAY: 25,
}


class Refused(Exception):
    """The dial has ended: the peer refused, or was another than the expected one."""


@dataclass
class Outcome:
    """What a session needs of its handshake."""

    root: bytes
    suite: int
    protocol: bytes
    own_id: bytes
    peer_id: bytes
    own: dict
    peer: dict
    waits: bool = False


class Dial:
    """Sends INIT and FINISH and takes what answers them; `outgoing` holds datagrams to send."""

    def __init__(self, who, expected, protocols, suites, now, transport=None, draw=os.urandom, extra=None):
        self.who, self.expected = who, identity.check_peer_id(expected)
        self.protocols, self.suites = protocols, suites
        self.transport = DEFAULTS | (transport or {})
        self.own_id = draw(8)
        self.noise = noise.Initiator(PROLOGUE, who.static_secret, draw(32))
        self.instance = draw(16)
        # A reserved id, so that no peer gets used to lists without unknown ones (PROTO §4.4).
        self.extra = [(31 * draw(1)[0] + 27, draw(3))] if extra is None else list(extra)
        self.first_message = self.noise.write_first(self._init_payload())
        self.cookie, self.cookies, self.impostors = datagram.NO_COOKIE, 0, 0
        self.give_up_at = None
        self.finish = None
        self.outcome = None
        self.confirmed = False
        self.wait = FIRST_REPEAT
        self.outgoing = [self._init()]
        self.repeat_at = now + self.wait

    def receive(self, data, now):
        """Takes a handshake datagram. Raises Refused when it ends the dial; drops what does not belong to it."""
        try:
            parsed = datagram.decode(data)
            if self.finish or parsed.destination != self.own_id:
                return
            if parsed.kind == datagram.COOKIE:
                self._on_cookie(datagram.cookie(parsed))
            elif parsed.kind == datagram.VERSIONS:
                self._on_versions(datagram.versions(parsed), now)
            elif parsed.kind == datagram.RESPONSE:
                self._on_response(parsed, now)
        except Malformed:
            pass

    def on_time(self, now):
        """Repeats what was not answered; Refused when nobody answered but impostors, or by a list of versions."""
        if self.confirmed:
            return
        if self.give_up_at is not None and not self.finish and now >= self.give_up_at:
            raise Refused("another PeerId answers, or the peer speaks other versions alone")
        if now >= self.repeat_at:
            self.impostors = 0
            self.outgoing.append(self.finish or self._init())
            self.wait = min(2 * self.wait, LAST_REPEAT)
            self.repeat_at = now + self.wait

    def confirm(self):
        """A packet of the responder opened: FINISH has come."""
        self.confirmed = True

    @property
    def timeout(self):
        """When `on_time` has something to do."""
        if self.confirmed:
            return None
        if self.give_up_at is None or self.finish:
            return self.repeat_at
        return min(self.repeat_at, self.give_up_at)

    def _init(self):
        return datagram.init(self.own_id, self.first_message, self.cookie)

    def _on_cookie(self, cookie):
        if cookie == self.cookie:
            return
        self.cookie = cookie
        self.cookies += 1
        if self.cookies <= COOKIES_AT_ONCE:
            self.outgoing.append(self._init())

    def _on_versions(self, versions, now):
        if datagram.VERSION not in versions:
            self._wait_for_right_one(now)

    def _on_response(self, parsed, now):
        if self.impostors >= IMPOSTORS:
            return
        tried = copy.deepcopy(self.noise)
        payload = tried.read_second(datagram.response_message(parsed))
        try:
            answer = parameters.decode(payload, "RESPONSE")
            if self._was_altered(answer, parsed):
                return
            self._check(answer, tried)
        except Malformed:
            self._bear_impostor(now)
            return
        if parameters.REFUSAL in answer:
            raise Refused(f"the peer refuses with code {answer[parameters.REFUSAL]}")
        self._finish(answer, parsed, tried, now)

    def _was_altered(self, answer, parsed):
        ids = (answer[parameters.INITIATOR_ID], answer[parameters.RESPONDER_ID])
        return ids != (parsed.destination, parsed.source)

    def _check(self, answer, tried):
        """PROTO §4.6 to §4.8. Malformed is another PeerId than the expected one."""
        peer = answer[parameters.PEER]
        if peer != self.expected or tried.remote_static != identity.static_public(peer):
            raise Malformed("another PeerId")
        if answer[parameters.FIRST_VERSION] != datagram.VERSION:
            raise Malformed("another first version")
        if parameters.REFUSAL in answer:
            return
        if answer[parameters.SUITE] != choose_suite(self.suites, answer[parameters.SUITES]):
            raise Malformed("a suite that does not follow from the lists")
        if answer[parameters.PROTOCOL] not in self.protocols:
            raise Malformed("a protocol that was not offered")

    def _bear_impostor(self, now):
        self.impostors += 1
        self._wait_for_right_one(now)

    def _wait_for_right_one(self, now):
        if self.give_up_at is None:
            self.give_up_at = now + IMPOSTOR_WAIT

    def _finish(self, answer, parsed, tried, now):
        mac_key = keys.finish_mac_key(*tried.state.split())
        message = tried.write_third(self._finish_payload(answer))
        sent = datagram.finish(parsed.source, self.own_id, message)
        self.finish = sent + keys.keyed(mac_key, sent)[:16]
        root = keys.first_root(*tried.state.split(), tried.state.h)
        peer = {key: answer[key] for key in TRANSPORT}
        choice = (answer[parameters.SUITE], answer[parameters.PROTOCOL])
        ids = (self.own_id, parsed.source)
        self.outcome = Outcome(root, *choice, *ids, self.transport, peer, parameters.ASK in answer)
        self.outgoing = [self.finish]
        self.wait = FIRST_REPEAT
        self.repeat_at = now + self.wait

    def _lists(self):
        protocols = b"".join(bytes([len(name)]) + name for name in self.protocols)
        return [
            (parameters.VERSIONS, u32(datagram.VERSION)),
            (parameters.FIRST_VERSION, u32(datagram.VERSION)),
            (parameters.SUITES, b"".join(map(u16, self.suites))),
            (parameters.PROTOCOLS, protocols),
            (parameters.INITIATOR_ID, self.own_id),
        ]

    def _init_payload(self):
        payload = parameters.encode(self._lists() + self.extra)
        # In the first message neither the ephemeral key nor a tag is part of the payload.
        return payload.ljust(datagram.MIN_SIZE - datagram.INIT_HEADER - 32, b"\x00")

    def _finish_payload(self, answer):
        own = [
            (parameters.RESPONDER_ID, answer[parameters.RESPONDER_ID]),
            (parameters.SUITE, u16(answer[parameters.SUITE])),
            (parameters.PROTOCOL, answer[parameters.PROTOCOL]),
            (parameters.PEER, self.who.peer_id),
            (parameters.INSTANCE, self.instance),
        ]
        transport = [(key, varint(value)) for key, value in sorted(self.transport.items())]
        return parameters.encode(self._lists() + own + transport + self.extra)


def choose_suite(ours, theirs):
    """The common suite whose worse place is the best, of equals the lowest number (PROTO §4.5); None without one."""
    common = [suite for suite in ours if suite in theirs]
    theirs = [suite for suite in theirs if suite in common]
    return min(common, key=lambda suite: (max(common.index(suite), theirs.index(suite)), suite), default=None)
