"""All streams of a session (PROTO §7.1)."""

from . import parameters
from .frames import frame
from .streams import UNIDIRECTIONAL, Incoming, Outgoing
from .wire import Malformed

LIMITS = {0: parameters.STREAMS_BI, UNIDIRECTIONAL: parameters.STREAMS_UNI}
MOST_STREAMS = 1 << 30
# Frames that the receiving end of a stream sends, and so name one that this end sends on.
TO_SENDER = {"STOP_SENDING", "MAX_STREAM_DATA", "STREAM_HOLES"}


class Streams:
    """Streams by their number; both halves of each, as far as there are."""

    def __init__(self, outcome, initiator, events, control):
        self.events, self.control = events, control
        self.own_bit = 0 if initiator else 1
        self.own, self.peer = outcome.own, outcome.peer
        self.outgoing, self.incoming = {}, {}
        # How many of each kind were opened by this end and by the peer, and how many may be.
        self.opened, self.peer_opened = dict.fromkeys(LIMITS, 0), dict.fromkeys(LIMITS, 0)
        self.limit = {kind: min(self.peer[key], MOST_STREAMS) for kind, key in LIMITS.items()}
        self.peer_limit = {kind: min(self.own[key], MOST_STREAMS) for kind, key in LIMITS.items()}

    def open(self, unidirectional):
        kind = UNIDIRECTIONAL if unidirectional else 0
        if self.opened[kind] >= self.limit[kind]:
            raise ValueError("the peer allows no more streams")
        stream = self.opened[kind] << 2 | kind | self.own_bit
        self.opened[kind] += 1
        self._make(stream, sends=True, receives=not unidirectional)
        return stream

    def next_frame(self, room):
        for half in self.outgoing.values():
            if item := half.next_frame(room):
                return item
        return None

    def on_frame(self, item):
        stream = item["stream"]
        self._open_by_peer(stream)
        sends = item.name in TO_SENDER
        halves = self.outgoing if sends else self.incoming
        if item.name == "HOLES_TAKEN" and stream in self.incoming:
            return
        if stream not in halves:
            raise Malformed(f"{item.name} for the wrong end of stream {stream}")
        half = halves[stream]
        if sends:
            self._on_sending(item, half)
        elif item.name in ("STREAM", "STREAM_FIN"):
            self._on_data(item, half)
        elif item.name == "RESET_STREAM" and not half.ended:
            half.on_reset(item["final_size"])
            self.events.append(("reset", stream, item["code"]))
            self._raise_limit(stream)

    def on_limit(self, item):
        kind = 0 if item.name == "MAX_STREAMS_BI" else UNIDIRECTIONAL
        self.limit[kind] = max(self.limit[kind], min(item["count"], MOST_STREAMS))

    def on_acked(self, item):
        if item.name in ("STREAM", "STREAM_FIN"):
            half = self.outgoing[item["stream"]]
            was_delivered = half.delivered
            half.on_acked(item)
            if half.delivered and not was_delivered:
                self.events.append(("delivered", item["stream"]))

    def on_lost(self, item):
        half = self.outgoing[item["stream"]]
        if not half.reset:
            half.on_lost(item)

    def _on_sending(self, item, half):
        if item.name == "MAX_STREAM_DATA":
            half.on_credit(item["credit"])
        elif item.name == "STREAM_HOLES":
            half.on_holes(item)
            self.control.append(frame("HOLES_TAKEN", stream=half.stream, report=half.report))
        elif not half.reset:
            half.reset = True
            self.control.append(frame("RESET_STREAM", stream=half.stream, code=item["code"], final_size=half.sent))
            self.events.append(("stopped", half.stream, item["code"]))

    def _on_data(self, item, half):
        data, ends = half.on_frame(item)
        if data or ends:
            self.events.append(("stream", half.stream, data, ends))
        credit = half.more_credit()
        if credit is not None:
            self.control.append(frame("MAX_STREAM_DATA", stream=half.stream, credit=credit))
        if ends:
            self._raise_limit(half.stream)

    def _open_by_peer(self, stream):
        number, kind = stream >> 2, stream & UNIDIRECTIONAL
        if stream & 1 == self.own_bit:
            if number >= self.opened[kind]:
                raise Malformed(f"stream {stream} was not opened")
            return
        if number >= self.peer_limit[kind]:
            raise Malformed(f"stream {stream} is one too many")
        while self.peer_opened[kind] <= number:
            new = self.peer_opened[kind] << 2 | kind | (1 - self.own_bit)
            self.peer_opened[kind] += 1
            self._make(new, sends=kind == 0, receives=True)

    def _make(self, stream, sends, receives):
        # Parameter 18 is the credit that an end gives on each stream that it receives on.
        if sends:
            self.outgoing[stream] = Outgoing(stream, self.peer[parameters.STREAM_CREDIT])
        if receives:
            self.incoming[stream] = Incoming(stream, self.own[parameters.STREAM_CREDIT])

    def _raise_limit(self, stream):
        """One stream of the peer is over: it may open another."""
        kind = stream & UNIDIRECTIONAL
        if stream & 1 != self.own_bit:
            self.peer_limit[kind] += 1
            name = "MAX_STREAMS_UNI" if kind else "MAX_STREAMS_BI"
            self.control.append(frame(name, count=self.peer_limit[kind]))
