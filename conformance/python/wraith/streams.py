"""The two halves of a stream (PROTO §7)."""

from .frames import frame
from .ranges import Ranges
from .wire import Malformed

UNIDIRECTIONAL = 2


class Outgoing:
    """The half that sends. It keeps all its bytes: what it is for are tests, not large files."""

    def __init__(self, stream, credit):
        self.stream, self.credit = stream, credit
        self.data, self.sent = b"", 0
        self.todo, self.acked = Ranges(), Ranges()
        self.fin = self.fin_todo = self.fin_acked = False
        self.reset = False
        # The last report of refused bytes that was taken, and whether MAX_STREAM_DATA has to come before more is sent.
        self.report, self.waits = 0, False

    def write(self, data, fin):
        if self.fin or self.reset:
            raise ValueError("the stream has ended")
        self.todo.add(len(self.data), len(self.data) + len(data))
        self.data += data
        self.fin = self.fin_todo = fin

    def next_frame(self, room):
        """A frame of at most `room` bytes with its data, if there is something to send."""
        if self.reset or self.waits:
            return None
        # Type and stream, offset and length take 1, at most 8, at most 8 and 2 bytes.
        room -= 19
        start, end = self.todo.all[0] if self.todo else (len(self.data), len(self.data))
        end = min(end, start + room, max(self.credit, start))
        last = self.fin_todo and end == len(self.data)
        if room <= 0 or (start == end and not last) or start > self.credit:
            return None
        self.todo.remove(start, end)
        self.sent = max(self.sent, end)
        if last:
            self.fin_todo = False
        return frame("STREAM_FIN" if last else "STREAM", self.data[start:end], stream=self.stream, offset=start)

    def on_acked(self, item):
        self.acked.add(item["offset"], item["offset"] + item["length"])
        self.fin_acked |= item.name == "STREAM_FIN"

    def on_lost(self, item):
        self._again(item["offset"], item["offset"] + item["length"], item.name == "STREAM_FIN" and not self.fin_acked)

    def on_credit(self, credit):
        self.credit = max(self.credit, credit)
        self.waits = False

    def on_holes(self, item):
        """Puts refused bytes back into the line, once for each report; one out of turn changes nothing (PROTO §7.5)."""
        start, end = item["offset"], item["offset"] + item["length"]
        if item["report"] != self.report + 1 or end > self.sent:
            return
        self.report = item["report"]
        if self.reset:
            return
        self.waits = True
        self.acked.remove(start, end)
        ends = self.fin and not self.fin_todo and end == len(self.data)
        self.fin_acked &= not ends
        self._again(start, end, ends)

    @property
    def delivered(self):
        whole = self.acked.all == [(0, len(self.data))] or not self.data
        return self.fin_acked and whole

    def _again(self, start, end, fin):
        self.todo.add(start, end)
        for acked in self.acked.all:
            self.todo.remove(*acked)
        self.fin_todo |= fin


class Incoming:
    """The half that receives, in order; `read` bytes were handed over."""

    def __init__(self, stream, credit):
        self.stream = stream
        self.window = self.credit = credit
        self.have, self.buffer, self.read = Ranges(), bytearray(), 0
        self.final = None
        self.ended = False

    def on_frame(self, item):
        """Takes bytes; returns those that continue what was handed over before, and whether the stream ends there."""
        end = item["offset"] + item["length"]
        if end > self.credit:
            raise Malformed("bytes beyond the credit of a stream")
        self._check_final(end, item.name == "STREAM_FIN")
        self.buffer.extend(bytes(max(0, end - len(self.buffer))))
        self.buffer[item["offset"] : end] = item.data
        self.have.add(item["offset"], end)
        return self._ready()

    def on_reset(self, final):
        if final > self.credit:
            raise Malformed("a stream reset beyond its credit")
        self._check_final(final, True)
        self.ended = True

    def more_credit(self):
        """A larger credit to announce, once half of the last is used up."""
        if self.ended or self.final is not None or self.credit - self.read > self.window // 2:
            return None
        self.credit = self.read + self.window
        return self.credit

    def _check_final(self, end, is_final):
        most = max([high for _, high in self.have.all], default=0)
        if self.final is not None and (end > self.final or (is_final and end != self.final)):
            raise Malformed("a final size that changes, or bytes beyond it")
        if is_final:
            if end < most:
                raise Malformed("a final size below what has come")
            self.final = end

    def _ready(self):
        start, end = self.have.all[0] if self.have else (0, 0)
        end = end if start == 0 else 0
        data, self.read = bytes(self.buffer[self.read : end]), max(self.read, end)
        ends = self.final is not None and self.read == self.final and not self.ended
        self.ended |= ends
        return data, ends
