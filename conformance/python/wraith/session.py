"""A session behind its handshake, without sockets and clocks. Times are seconds."""

import random
from collections import deque

from . import packet, parameters
from .epochs import Epochs
from .frames import MAX_RANGES, decode_packet, encode, frame
from .ids import Ids
from .mux import Streams
from .ranges import Ranges
from .recovery import Recovery, Sent
from .wire import Malformed

VIOLATION, EXHAUSTED = 1, 3
REPLAY_WINDOW = 8192
# Packets that may fail to open, by suite, and numbers of an epoch that AES-256-GCM may use (PROTO §5.12).
FAILURES = {1: 1 << 36, 2: 1 << 52}
EPOCH_PACKETS, LEFT_FOR_CLOSE = 1 << 23, 64
# One number in so many is left out (PROTO §8.7).
SKIP_ONE_IN = 64
# Frames that say something of a stream, with those that open one.
OF_STREAMS = {
    "STREAM",
    "STREAM_FIN",
    "RESET_STREAM",
    "STOP_SENDING",
    "MAX_STREAM_DATA",
    "STREAM_HOLES",
    "STREAM_BLOCKED",
    "HOLES_TAKEN",
}


class Session:
    """Takes datagrams by `receive`, gives them by `outgoing`; `events` holds what the application has to know."""

    def __init__(self, outcome, now, initiator=True, rng=None):
        self.initiator, self.rng = initiator, rng or random.Random()
        self.outcome = outcome
        self.ids = Ids(outcome.own_id, outcome.peer_id)
        self.epochs = Epochs(outcome.root, outcome.suite, initiator, now)
        self.recovery = Recovery(min(outcome.peer[parameters.MAX_ACK_DELAY], 1 << 14) / 1000)
        self.max_datagram = min(packet.MIN_DATAGRAM, outcome.peer[parameters.MAX_DATAGRAM])
        self.events, self.control, self.datagrams = deque(), deque(), deque()
        # Challenges, the sizes of their datagrams, and where they came from.
        self.challenges, self.source, self.arrived_size, self.asked = deque(), None, 0, False
        self.streams = Streams(outcome, initiator, self.events, self.control)
        # An initiator that was told to wait says nothing of the application before AUTHORIZED (PROTO §6.7).
        self.waits = outcome.waits and initiator
        self.withholds = outcome.waits and not initiator
        self.received, self.expected = Ranges(), 0
        self.ack_due, self.failures = False, 0
        # The frame that ended the session; whether this end sends it, and how seldom.
        self.closing, self.echoes = None, None
        self.closed_at = None
        self.heard_at = now
        # PING, PADDING, extensions and an answer to no challenge say nothing that is not said by their packet.
        self.handlers = {
            "DATAGRAM": self._on_datagram,
            "ACK": self._on_ack,
            "ACK_ECN": self._on_ack,
            "CLOSE": self._on_closed,
            "CLOSE_APP": self._on_closed,
            "MAX_STREAMS_BI": self._on_limit,
            "MAX_STREAMS_UNI": self._on_limit,
            "KEY_SHARE": self._on_share,
            "PATH_CHALLENGE": self._on_challenge,
            "AUTHORIZED": self._on_authorized,
            "NEW_CONNECTION_ID": self._on_id,
            "RETIRE_CONNECTION_ID": self._on_id,
        }
        idle = [outcome.own[parameters.IDLE_TIMEOUT], outcome.peer[parameters.IDLE_TIMEOUT]]
        self.idle = min((timeout / 1000 for timeout in idle if timeout), default=None)

    # What the application does.

    def send_datagram(self, data):
        if len(data) + packet.OVERHEAD + 3 > self.max_datagram:
            raise ValueError(f"a datagram of {len(data)} bytes does not fit a packet")
        self.datagrams.append(frame("DATAGRAM", data))

    def open(self, unidirectional=False):
        return self.streams.open(unidirectional)

    def write(self, stream, data, fin=False):
        self.streams.outgoing[stream].write(data, fin)

    def ping(self):
        self.control.append(frame("PING"))

    def begin_exchange(self):
        """Begins to change keys, if PROTO §5.14 allows it now."""
        if self.epochs.may_begin():
            self.control.append(self.epochs.begin())
            return True
        return False

    def close(self, code, now):
        self._close(frame("CLOSE_APP", code=code), now)

    # What arrives.

    def receive(self, datagram, now, source=None):
        """Returns whether a packet of the peer opened; `source` is the address that it came from."""
        self.source, self.arrived_size, self.asked = source, len(datagram), False
        opened = self._open(datagram, now)
        if opened is None:
            return False
        first, number, body = opened
        self.heard_at = now
        if self.closing:
            self._echo()
            return True
        try:
            if first & packet.RESERVED:
                raise Malformed("a reserved bit is set")
            asks = False
            for item in decode_packet(body):
                asks |= item.asks
                self._on_frame(item, now)
                if self.closing:
                    return True
        except Malformed as error:
            self.events.append(("violation", str(error)))
            self._close(frame("CLOSE", code=VIOLATION), now)
            return True
        self.received.add(number, number + 1)
        self.received.all = self.received.all[-MAX_RANGES:]
        self.ack_due |= asks
        return True

    def on_time(self, now):
        self.epochs.on_time(now)
        for lost in self.recovery.on_time(now):
            self._on_lost(lost)
        if self.idle is not None and now >= self._idle_at():
            self._end("idle", None, now)
        if self.epochs.is_due(now) and not self.closing:
            self.control.append(self.epochs.begin())

    @property
    def timeout(self):
        """When `on_time` has something to do."""
        idle_at = self._idle_at() if self.idle is not None and not self.closing else None
        timers = [self.recovery.timeout, self.epochs.drop_at, idle_at]
        return min((timer for timer in timers if timer is not None), default=None)

    def lingers(self, now):
        """Whether the end that closed has to stay, to answer what still arrives (PROTO §9.3)."""
        return self.echoes is not None and now < self.closed_at + 3 * self.recovery.pto

    def _idle_at(self):
        return self.heard_at + max(self.idle, 3 * self.recovery.pto)

    # What leaves.

    def outgoing(self, now, room=None):
        """Datagrams to send; with `room`, at most one, of at most so many bytes."""
        out = []
        while self._has_frames():
            sent = self._packet(now, room or self.max_datagram)
            if sent is None:
                break
            out.append(sent)
            if room is not None:
                break
        return out

    def path_answers(self):
        """Answers to challenges, each with the address that it has to go to (PROTO §13.2)."""
        answers = []
        while self.challenges and not self.closing:
            data, size, source = self.challenges.popleft()
            frames = [frame("PATH_RESPONSE", data=data)]
            padding = packet.MIN_DATAGRAM - packet.OVERHEAD - len(encode(frames[0]))
            if size >= packet.MIN_DATAGRAM:
                frames += [frame("PADDING")] * padding
            answers.append((self._sealed(frames, self.recovery.number(False)), source))
        return answers

    def _has_frames(self):
        if self.closing:
            return bool(self.control)
        return self.ack_due or not self.recovery.full

    def _packet(self, now, room):
        frames = self._frames(room - packet.OVERHEAD)
        if not frames:
            return None
        number = self.recovery.number(self.rng.randrange(SKIP_ONE_IN) == 0)
        if self.epochs.packets >= EPOCH_PACKETS - LEFT_FOR_CLOSE and self.outcome.suite == 2 and not self.closing:
            self._close(frame("CLOSE", code=EXHAUSTED), now)
            frames = [self.control.popleft()]
        if any(item.asks for item in frames):
            self.recovery.on_sent(Sent(number, now, self.epochs.sending, frames))
        return self._sealed(frames, number)

    def _sealed(self, frames, number):
        epoch = self.epochs.sending
        self.epochs.on_sent()
        data = b"".join(item.data for item in frames)
        body = packet.join(data, b"".join(map(encode, frames)))
        first = packet.FORM | self.rng.getrandbits(1) << 4 | epoch % 4
        keys = self.epochs.send_keys[epoch]
        return packet.seal(keys, self.epochs.own_header, first, self.ids.peer, number, body)

    def _frames(self, room):
        """As many frames as fit; the order of the list is their order in the packet."""
        box = Box(room)
        if self.closing:
            box.take_from(self.control)
            return box.frames
        if self.ack_due and box.take(self._ack()):
            self.ack_due = False
        if self.recovery.full:
            return box.frames
        box.take_from(self.control)
        if self.waits:
            return box.frames
        box.take_from(self.datagrams)
        while item := self.streams.next_frame(box.room):
            box.take(item)
        return box.frames

    def _ack(self):
        ranges = [(start, end - 1) for start, end in reversed(self.received.all)]
        return frame("ACK", delay=0, ranges=ranges)

    # Frames that arrived.

    def _open(self, datagram, now):
        if not packet.is_packet(datagram) or datagram[1:9] not in self.ids.own.values():
            return None
        clear = packet.protect(datagram, self.outcome.suite, self.epochs.peer_header)
        number = packet.full_number(int.from_bytes(clear[9:13], "big"), self.expected)
        found = self.epochs.of_phase(clear[0] & packet.PHASE)
        body = found and packet.open_(found[1], number, clear)
        if body is None:
            self.failures += 1
            if self.failures >= FAILURES[self.outcome.suite]:
                self._close(frame("CLOSE", code=EXHAUSTED), now)
            return None
        # Only now may the window be looked at (PROTO §5.8).
        if number in self.received or number < self.expected - REPLAY_WINDOW or self._is_forgotten(number):
            return None
        self.expected = max(self.expected, number + 1)
        self.epochs.on_opened(found[0], now, self.recovery.pto)
        return clear[0], number, body

    def _is_forgotten(self, number):
        """Of the ranges that are too old to be kept, nobody knows which numbers came: none is taken again."""
        ranges = self.received.all
        return len(ranges) == MAX_RANGES and number < ranges[0][0]

    def _on_frame(self, item, now):
        if self.withholds and (item.name in OF_STREAMS or item.name == "DATAGRAM"):
            raise Malformed("application data before AUTHORIZED")
        if item.name in OF_STREAMS:
            self.streams.on_frame(item)
        elif item.name in self.handlers:
            self.handlers[item.name](item, now)

    def _on_datagram(self, item, _):
        self.events.append(("datagram", item.data))

    def _on_closed(self, item, now):
        self._end(item.name, item["code"], now)

    def _on_challenge(self, item, _):
        # Of several in a packet the first alone.
        if not self.asked:
            self.asked = True
            self.challenges.append((item["data"], self.arrived_size, self.source))

    def _on_limit(self, item, _):
        self.streams.on_limit(item)

    def _on_share(self, item, now):
        answer = self.epochs.on_share(item, now)
        if answer:
            self.control.append(answer)

    def _on_authorized(self, _, __):
        if not self.initiator:
            raise Malformed("AUTHORIZED of an initiator")
        self.waits = False

    def _on_id(self, item, _):
        self.control.extend(self.ids.on_frame(item))

    def _on_ack(self, item, now):
        acked, lost = self.recovery.on_ack(item, now)
        for packet_acked in acked:
            self.epochs.on_acked(packet_acked.epoch)
            for sent in packet_acked.frames:
                if sent.name == "KEY_SHARE":
                    self.epochs.on_share_acked(sent["epoch"], now)
                self.streams.on_acked(sent)
        for packet_lost in lost:
            self._on_lost(packet_lost)

    def _on_lost(self, lost):
        """Sends the frames again; an ACK and a DATAGRAM never (PROTO §7.9), HOLES_TAKEN neither (PROTO §7.5)."""
        for item in lost.frames:
            if item.name in ("STREAM", "STREAM_FIN"):
                self.streams.on_lost(item)
            elif item.asks and item.name not in ("DATAGRAM", "HOLES_TAKEN"):
                self.control.append(item)

    def _close(self, item, now):
        if not self.closing:
            self._end(item.name, item["code"], now)
            self.echoes = 0
            self.control.append(item)

    def _echo(self):
        """Answers with the same frame, after 1, 2, 4, … packets; an end that was told to close never does."""
        if self.echoes is None:
            return
        self.echoes += 1
        if self.echoes & (self.echoes - 1) == 0:
            self.control.append(self.closing)

    def _end(self, name, code, now):
        if self.closing:
            return
        self.closing = frame(name, code=code)
        self.closed_at = now
        self.control.clear()
        self.recovery.flight.clear()
        self.events.append(("closed", name, code))


class Box:
    """Frames that fit into a packet."""

    def __init__(self, room):
        self.room, self.frames = room, []

    def take(self, item):
        size = len(encode(item)) + len(item.data)
        if size > self.room:
            return False
        self.room -= size
        self.frames.append(item)
        return True

    def take_from(self, line):
        while line and self.take(line[0]):
            line.popleft()
