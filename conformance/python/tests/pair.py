"""Two sessions in memory, with a clock and losses of the test's own."""

import random

from wraith.dial import DEFAULTS, Outcome
from wraith.session import Session

TRIP = 0.01


class Pair:
    """`a` dialled `b`. `lose` takes the sender's name and a datagram, and says whether it gets lost."""

    def __init__(self, suite=1, own=None, peer=None, waits=False):
        own, peer = DEFAULTS | (own or {}), DEFAULTS | (peer or {})
        root, ids = b"\x11" * 32, (b"ids of a", b"ids of b")
        of_a = Outcome(root, suite, b"test/1", *ids, own, peer, waits)
        of_b = Outcome(root, suite, b"test/1", *ids[::-1], peer, own, waits)
        self.now = 0.0
        self.a = Session(of_a, 0.0, rng=random.Random(1))
        self.b = Session(of_b, 0.0, initiator=False, rng=random.Random(2))
        self.lose = lambda name, datagram: False
        self.log = []

    def run(self, seconds=1.0):
        """Both ends send and hear each other every hundredth of a second."""
        until = self.now + seconds
        while self.now < until:
            moved = [("a", self.a.outgoing(self.now), self.b), ("b", self.b.outgoing(self.now), self.a)]
            self.now += TRIP
            for name, datagrams, other in moved:
                for datagram in datagrams:
                    self.log.append((name, datagram))
                    if not self.lose(name, datagram):
                        other.receive(datagram, self.now)
            for end in (self.a, self.b):
                end.on_time(self.now)


def stream_bytes(session, stream):
    """What arrived on a stream, and whether it ended."""
    pieces = [event[2:] for event in session.events if event[:2] == ("stream", stream)]
    return b"".join(data for data, _ in pieces), any(ends for _, ends in pieces)


def of_kind(session, kind):
    return [event[1:] for event in session.events if event[0] == kind]
