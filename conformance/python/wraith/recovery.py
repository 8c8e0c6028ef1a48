"""What was sent and is not acknowledged: a small loss detection on RFC 9002 with a window that never moves."""

from dataclasses import dataclass

from .wire import Malformed

PACKET_THRESHOLD = 3
FIRST_RTT = 0.333
GRANULARITY = 0.001
LONGEST_PTO = 2.0
# Packets in flight. A client that is to share a network needs congestion control (PROTO §8.6) instead.
WINDOW = 32


@dataclass
class Sent:
    """A packet that asks for an acknowledgement."""

    number: int
    at: float
    epoch: int
    frames: list


class Recovery:
    """The packets in flight, the round trip time, and the timer that takes packets as lost."""

    def __init__(self, max_ack_delay):
        self.max_ack_delay = max_ack_delay
        self.flight = {}
        self.next_number = 0
        self.skipped = set()
        self.rtt, self.variance = None, 0.0
        self.timeouts = 0

    def number(self, skip):
        """The number of the next packet, leaving out one if told so (PROTO §8.7)."""
        if skip:
            self.skipped.add(self.next_number)
            self.next_number += 1
        self.next_number += 1
        return self.next_number - 1

    def on_sent(self, packet):
        self.flight[packet.number] = packet

    def on_ack(self, item, now):
        """Returns the packets that were acknowledged and those that are lost."""
        ranges = item["ranges"]
        largest = ranges[0][1]
        if largest >= self.next_number or any(low <= skip <= high for low, high in ranges for skip in self.skipped):
            raise Malformed("an ACK of a number that was not sent")
        acked = [packet for number, packet in self.flight.items() if any(low <= number <= high for low, high in ranges)]
        if acked:
            self.timeouts = 0
        for packet in acked:
            del self.flight[packet.number]
            if packet.number == largest:
                self._sample(now - packet.at, item["delay"] / 1e6)
        lost = [packet for packet in self.flight.values() if packet.number <= largest - PACKET_THRESHOLD]
        return acked, self._take(lost)

    def on_time(self, now):
        """The packets that are lost because nothing was heard of them for a probe timeout."""
        if self.timeout is None or now < self.timeout:
            return []
        lost = [packet for packet in self.flight.values() if now >= packet.at + self.pto]
        self.timeouts += 1
        return self._take(lost)

    @property
    def pto(self):
        if self.rtt is None:
            first = 3 * FIRST_RTT
        else:
            first = self.rtt + max(4 * self.variance, GRANULARITY) + self.max_ack_delay
        return min(first * 2**self.timeouts, max(LONGEST_PTO, first))

    @property
    def timeout(self):
        if not self.flight:
            return None
        return min(packet.at for packet in self.flight.values()) + self.pto

    @property
    def full(self):
        return len(self.flight) >= WINDOW

    def _take(self, lost):
        for packet in lost:
            del self.flight[packet.number]
        return lost

    def _sample(self, rtt, delay):
        if self.rtt is None:
            self.rtt, self.variance = rtt, rtt / 2
            return
        rtt = max(rtt - min(delay, self.max_ack_delay), 0.0)
        self.variance = 0.75 * self.variance + 0.25 * abs(self.rtt - rtt)
        self.rtt = 0.875 * self.rtt + 0.125 * rtt
