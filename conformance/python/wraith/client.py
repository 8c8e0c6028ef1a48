"""A session over a UDP socket, for one thread that waits for what it asked."""

import contextlib
import random
import selectors
import socket
import time

from .datagram import MIN_SIZE
from .dial import Dial
from .keys import AES_256_GCM, XCHACHA20_POLY1305
from .session import Session

HANDSHAKE_SECONDS = 5.0
LARGEST_DATAGRAM = 65_535
BOTH_SUITES = (XCHACHA20_POLY1305, AES_256_GCM)


class TimedOut(Exception):
    """What was waited for did not come."""


class Client:
    """Dials on construction; `close` ends the session and the socket."""

    def __init__(self, who, peer, address, protocols, suites=BOTH_SUITES, transport=None, seconds=HANDSHAKE_SECONDS):
        self.address = address
        self.family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self.selector = selectors.DefaultSelector()
        self.socket = self._bind()
        self.dial = Dial(who, peer, list(protocols), list(suites), time.monotonic(), transport)
        self.session = None
        try:
            self.wait(lambda: self.session, seconds)
        except BaseException:
            self._release()
            raise

    def wait(self, done, seconds):
        """Runs the session until `done()` is true, and returns that."""
        until = time.monotonic() + seconds
        while not (result := done()):
            if time.monotonic() >= until:
                raise TimedOut(f"nothing came from {self.address} within {seconds} s")
            self.turn(until)
        return result

    def rest(self, until):
        """Runs the session until then."""
        while time.monotonic() < until and not self.session.closing:
            self.turn(until)

    def next(self, kind, seconds=5.0):
        """The next event of this kind; events of other kinds stay where they are."""

        def take():
            events = self.session.events
            found = next((event for event in events if event[0] == kind), None)
            if found:
                events.remove(found)
            return found

        return self.wait(take, seconds)[1:]

    def turn(self, until):
        """Sends what is due and takes what comes until then or until the next timer."""
        self._send()
        timeouts = [until, self.dial.timeout, self.session and self.session.timeout]
        rest = min(timeout for timeout in timeouts if timeout is not None) - time.monotonic()
        if self.selector.select(max(rest, 0)):
            self._receive()
        now = time.monotonic()
        self.dial.on_time(now)
        if self.session:
            self.session.on_time(now)
        self._send()

    def close(self, code=0):
        """Says CLOSE_APP and stays as long as the peer may not have heard it."""
        self.session.close(code, time.monotonic())
        until = time.monotonic() + 3 * self.session.recovery.pto
        while self.session.lingers(time.monotonic()):
            self.turn(until)
        self._release()

    def move(self):
        """Goes on from another port, like behind a NAT that has forgotten the session."""
        self.selector.unregister(self.socket)
        self.socket.close()
        self.socket = self._bind()

    def _bind(self):
        bound = socket.socket(self.family, socket.SOCK_DGRAM)
        bound.setblocking(False)
        self.selector.register(bound, selectors.EVENT_READ)
        return bound

    def _receive(self):
        for _ in range(256):
            try:
                # From whatever address: what is authentic tells (PROTO §4.11).
                data, source = self.socket.recvfrom(LARGEST_DATAGRAM)
            except BlockingIOError:
                return
            now = time.monotonic()
            if data and data[0] & 0x80:
                self.dial.receive(data, now)
                if self.dial.outcome and not self.session:
                    self.session = Session(self.dial.outcome, now, rng=random.SystemRandom())
            elif self.session and self.session.receive(data, now, source):
                self.dial.confirm()

    def _send(self):
        handshake, self.dial.outgoing = self.dial.outgoing, []
        now = time.monotonic()
        for datagram in handshake:
            self._put(datagram + self._behind(datagram, now))
        if self.session:
            for datagram in self.session.outgoing(now):
                self._put(datagram)
            for datagram, source in self.session.path_answers():
                self._put(datagram, source)

    def _behind(self, datagram, now):
        """A packet that follows FINISH in its datagram (PROTO §4.18)."""
        if not self.session or datagram != self.dial.finish:
            return b""
        return b"".join(self.session.outgoing(now, MIN_SIZE - len(datagram)))

    def _put(self, datagram, address=None):
        # What a full socket does not take is lost, as on the way.
        with contextlib.suppress(BlockingIOError):
            self.socket.sendto(datagram, address or self.address)

    def _release(self):
        self.selector.close()
        self.socket.close()
