"""Sessions in memory: what arrives, what is refused, and how they end."""

import random
import unittest

from wraith import packet, parameters
from wraith.frames import encode, frame

from .pair import Pair, of_kind, stream_bytes

VIOLATION = [("CLOSE", 1)]


def say(session, frames, first=packet.FORM, number=None):
    """A packet of a session that holds these frames, whether the protocol allows them or not."""
    body = packet.join(b"".join(item.data for item in frames), b"".join(map(encode, frames)))
    number = session.recovery.number(False) if number is None else number
    epochs = session.epochs
    first |= epochs.sending % 4
    return packet.seal(epochs.send_keys[epochs.sending], epochs.own_header, first, session.ids.peer, number, body)


class Data(unittest.TestCase):
    def test_datagrams_and_streams_go_both_ways_with_both_suites(self):
        for suite in (1, 2):
            pair = Pair(suite)
            up, down = pair.a.open(), pair.b.open(unidirectional=True)
            self.assertEqual((up, down), (0, 3))
            pair.a.write(up, b"question", fin=True)
            pair.b.write(down, b"news" * 1000, fin=True)
            pair.b.send_datagram(b"datagram")
            pair.run(0.1)
            pair.b.write(up, b"answer", fin=True)
            pair.run(0.1)
            self.assertEqual(stream_bytes(pair.b, up), (b"question", True))
            self.assertEqual(stream_bytes(pair.a, up), (b"answer", True))
            self.assertEqual(stream_bytes(pair.a, down), (b"news" * 1000, True))
            self.assertEqual(of_kind(pair.a, "datagram"), [(b"datagram",)])
            self.assertEqual(of_kind(pair.b, "delivered"), [(down,), (up,)])

    def test_a_stream_is_whole_behind_losses_and_longer_than_its_credit(self):
        draws = random.Random(7)
        pair = Pair(own={parameters.STREAM_CREDIT: 5000}, peer={parameters.STREAM_CREDIT: 5000})
        pair.lose = lambda *_: draws.random() < 0.2
        data = draws.randbytes(100_000)
        stream = pair.a.open(unidirectional=True)
        pair.a.write(stream, data, fin=True)
        pair.run(60.0)
        self.assertEqual(stream_bytes(pair.b, stream), (data, True))
        self.assertEqual(of_kind(pair.a, "delivered"), [(stream,)])

    def test_a_datagram_is_never_sent_again(self):
        pair = Pair()
        pair.lose = lambda *_: True
        pair.a.send_datagram(b"once")
        pair.run(0.5)
        pair.lose = lambda *_: False
        pair.run(10.0)
        self.assertEqual(of_kind(pair.b, "datagram"), [])

    def test_more_streams_may_be_opened_as_others_end(self):
        pair = Pair(peer={parameters.STREAMS_UNI: 2})
        for _ in range(9):
            stream = pair.a.open(unidirectional=True)
            pair.a.write(stream, b"x", fin=True)
            pair.run(0.1)
        pair.a.open(unidirectional=True)
        pair.a.open(unidirectional=True)
        with self.assertRaises(ValueError):
            pair.a.open(unidirectional=True)

    def test_more_streams_than_there_are_numbers_means_as_many_as_there_are(self):
        pair = Pair(peer={parameters.STREAMS_UNI: 1 << 40})
        self.assertEqual(pair.a.streams.limit[2], 1 << 30)
        frames = [frame("MAX_STREAMS_BI", count=(1 << 62) - 1), frame("MAX_STREAMS_UNI", count=3)]
        pair.a.receive(say(pair.b, frames), 0.0)
        self.assertEqual(pair.a.streams.limit, {0: 1 << 30, 2: 1 << 30})

    def test_a_stream_that_is_not_wanted_is_reset_with_the_same_code(self):
        pair = Pair()
        stream = pair.a.open(unidirectional=True)
        pair.a.write(stream, b"unwanted")
        pair.run(0.1)
        pair.b.control.append(frame("STOP_SENDING", stream=stream, code=77))
        pair.run(0.1)
        self.assertEqual(of_kind(pair.a, "stopped"), [(stream, 77)])
        self.assertEqual(of_kind(pair.b, "reset"), [(stream, 77)])

    def test_a_duplicate_is_dropped(self):
        pair = Pair()
        twice = say(pair.a, [frame("DATAGRAM", b"one")])
        self.assertTrue(pair.b.receive(twice, 0.0))
        self.assertFalse(pair.b.receive(twice, 0.0))
        late = say(pair.a, [frame("DATAGRAM", b"two")], number=9000)
        self.assertTrue(pair.b.receive(late, 0.0))
        self.assertFalse(pair.b.receive(say(pair.a, [frame("DATAGRAM", b"old")], number=800), 0.0))
        self.assertTrue(pair.b.receive(say(pair.a, [frame("DATAGRAM", b"new")], number=809), 0.0))
        self.assertEqual(of_kind(pair.b, "datagram"), [(b"one",), (b"two",), (b"new",)])

    def test_what_does_not_open_changes_nothing(self):
        pair = Pair()
        good = say(pair.a, [frame("DATAGRAM", b"good")])
        for at in range(len(good)):
            bad = bytearray(good)
            bad[at] ^= 0x20
            self.assertFalse(pair.b.receive(bytes(bad), 0.0), at)
        self.assertFalse(pair.b.receive(good[:30], 0.0))
        self.assertTrue(pair.b.receive(good, 0.0))
        self.assertEqual(list(pair.b.events), [("datagram", b"good")])


class Paths(unittest.TestCase):
    def test_a_challenge_is_answered_alone_to_where_it_came_from_and_in_its_size(self):
        pair = Pair()
        challenge = frame("PATH_CHALLENGE", data=b"unguess.")
        large = [challenge] + [frame("PADDING")] * (1200 - packet.OVERHEAD - 9)
        several = [challenge, frame("PATH_CHALLENGE", data=b"another."), *large[10:]]
        for frames, size in (([challenge], packet.OVERHEAD + 9), (large, 1200), (several, 1200)):
            asked = say(pair.a, frames)
            self.assertEqual(len(asked), size)
            self.assertTrue(pair.b.receive(asked, 0.0, source="elsewhere"))
            ((answer, where),) = pair.b.path_answers()
            self.assertEqual((len(answer), where), (size, "elsewhere"))
            self.assertEqual(pair.b.path_answers(), [])
            heard = []
            pair.a.handlers["PATH_RESPONSE"] = lambda item, _, heard=heard: heard.append(item["data"])
            self.assertTrue(pair.a.receive(answer, 0.0))
            self.assertEqual(heard, [b"unguess."])
        self.assertEqual(pair.b.recovery.flight, {})


class Ids(unittest.TestCase):
    def test_an_id_that_was_retired_is_replaced(self):
        pair = Pair()
        first = pair.b.outcome.own_id
        pair.a.control.append(frame("RETIRE_CONNECTION_ID", sequence=0))
        late = say(pair.a, [frame("PING")])
        pair.run(0.1)
        self.assertNotIn(first, pair.b.ids.own.values())
        self.assertEqual([*pair.b.ids.own.values()], [pair.a.ids.of_peer[1]])
        self.assertFalse(pair.b.receive(late, pair.now))

    def test_ids_below_the_limit_are_given_back(self):
        pair = Pair()
        new = frame("NEW_CONNECTION_ID", sequence=1, retire_prior_to=1, id=b"second b")
        pair.b.ids.own[1], pair.b.ids.given = b"second b", 2
        pair.b.control.append(new)
        pair.a.send_datagram(b"by the old one")
        pair.run(0.1)
        pair.a.send_datagram(b"by the new one")
        pair.run(0.1)
        self.assertEqual(of_kind(pair.b, "datagram"), [(b"by the old one",), (b"by the new one",)])
        self.assertEqual([datagram[1:9] for name, datagram in pair.log if name == "a"][-1], b"second b")
        self.assertEqual(sorted(pair.b.ids.own), [1, 2])


class Waiting(unittest.TestCase):
    def test_application_data_wait_for_authorized(self):
        pair = Pair(waits=True)
        pair.a.write(pair.a.open(), b"early")
        pair.a.send_datagram(b"early")
        pair.run(0.2)
        self.assertEqual(list(pair.b.events), [])
        pair.b.control.append(frame("AUTHORIZED"))
        pair.b.withholds = False
        pair.run(0.2)
        self.assertEqual(stream_bytes(pair.b, 0), (b"early", False))
        self.assertEqual(of_kind(pair.b, "datagram"), [(b"early",)])

    def test_who_does_not_wait_is_closed(self):
        pair = Pair(waits=True)
        pair.a.waits = False
        pair.a.send_datagram(b"early")
        pair.run(0.2)
        self.assertEqual(of_kind(pair.a, "closed"), VIOLATION)


class Holes(unittest.TestCase):
    def test_refused_bytes_are_sent_again_once_credit_comes(self):
        pair = Pair()
        stream = pair.a.open(unidirectional=True)
        pair.a.write(stream, b"0123456789", fin=True)
        self.assertEqual(len(pair.a.outgoing(0.0)), 1)
        holes = frame("STREAM_HOLES", stream=stream, report=1, offset=2, length=8)
        self.assertTrue(pair.a.receive(say(pair.b, [holes]), 0.01))
        (answer,) = pair.a.outgoing(0.01)
        self.assertEqual(pair.a.streams.outgoing[stream].todo.all, [(2, 10)])
        self.assertTrue(pair.b.receive(answer, 0.02))
        credit = frame("MAX_STREAM_DATA", stream=stream, credit=1 << 20)
        self.assertTrue(pair.a.receive(say(pair.b, [holes, credit]), 0.03))
        (again,) = pair.a.outgoing(0.03)
        self.assertTrue(pair.b.receive(again, 0.04))
        half = pair.b.streams.incoming[stream]
        self.assertEqual((half.have.all, half.final), ([(2, 10)], 10))

    def test_a_report_out_of_turn_changes_nothing_and_is_answered(self):
        pair = Pair()
        stream = pair.a.open(unidirectional=True)
        pair.a.write(stream, b"0123456789")
        pair.a.outgoing(0.0)
        for report, length in ((2, 1), (0, 1), (1, 11)):
            holes = frame("STREAM_HOLES", stream=stream, report=report, offset=0, length=length)
            pair.a.receive(say(pair.b, [holes]), 0.01)
            self.assertEqual(pair.a.control.pop(), frame("HOLES_TAKEN", stream=stream, report=0))
            half = pair.a.streams.outgoing[stream]
            self.assertEqual((half.todo.all, half.waits), ([], False))
        self.assertEqual(of_kind(pair.a, "closed"), [])

    def test_the_end_alone_can_be_refused(self):
        pair = Pair()
        stream = pair.a.open(unidirectional=True)
        pair.a.write(stream, b"0123", fin=True)
        pair.run(0.05)
        holes = frame("STREAM_HOLES", stream=stream, report=1, offset=4, length=0)
        pair.a.receive(say(pair.b, [holes, frame("MAX_STREAM_DATA", stream=stream, credit=1)]), pair.now)
        again = pair.a.streams.next_frame(100)
        self.assertEqual(again, frame("STREAM_FIN", b"", stream=stream, offset=4))


class Violations(unittest.TestCase):
    def test_each_ends_the_session_with_close_1(self):
        far = {"stream": 0, "code": 0}
        stream = {"stream": 0, "offset": 0}
        for what, frames in {
            "an ACK of a number that was not sent": [frame("ACK", delay=0, ranges=[(0, 5)])],
            "data on a stream beyond those allowed": [frame("STREAM", b"x", stream=4 * 16, offset=0)],
            "data on the own unidirectional stream": [frame("STREAM", b"x", stream=3, offset=0)],
            "credit for a stream of the peer": [frame("MAX_STREAM_DATA", stream=2, credit=1)],
            "a stream that was not opened": [frame("STOP_SENDING", stream=1, code=0)],
            "data beyond the credit": [frame("STREAM", b"x", stream=0, offset=1 << 20)],
            "a final size that changes": [frame("STREAM_FIN", b"x", **stream), frame("STREAM_FIN", b"xy", **stream)],
            "data beyond the final size": [frame("STREAM_FIN", b"x", **stream), frame("STREAM", b"xy", **stream)],
            "a final size below the data": [
                frame("STREAM", b"xy", **stream),
                frame("RESET_STREAM", final_size=1, **far),
            ],
            "AUTHORIZED of an initiator": [frame("AUTHORIZED")],
            "an id that was never given": [frame("RETIRE_CONNECTION_ID", sequence=1)],
            "an id that retires itself": [frame("NEW_CONNECTION_ID", sequence=1, retire_prior_to=2, id=bytes(8))],
            "a number with another id": [frame("NEW_CONNECTION_ID", sequence=0, retire_prior_to=0, id=bytes(8))],
            "a fifth id": [
                frame("NEW_CONNECTION_ID", sequence=number, retire_prior_to=0, id=bytes([number] * 8))
                for number in range(1, 5)
            ],
            "a share for epoch 0": [share(0)],
            "a share for a later epoch": [share(2)],
            "a share of another group": [share(1, group=2)],
            "an X25519 result of zero": [share(1, piece=bytes(32))],
        }.items():
            pair = Pair()
            self.assertTrue(pair.b.receive(say(pair.a, frames), 0.0))
            self.assertEqual(of_kind(pair.b, "closed"), VIOLATION, what)
            pair.run(0.1)
            self.assertEqual(of_kind(pair.a, "closed"), VIOLATION, what)

    def test_a_reserved_bit_in_an_authentic_packet_is_one(self):
        pair = Pair()
        pair.b.receive(say(pair.a, [frame("PING")], first=packet.FORM | 0b100), 0.0)
        self.assertEqual(of_kind(pair.b, "closed"), VIOLATION)

    def test_an_ack_of_a_number_that_was_left_out_is_one(self):
        pair = Pair()
        pair.b.ping()
        pair.b.outgoing(0.0)
        left_out = pair.b.recovery.next_number
        pair.b.recovery.number(skip=True)
        for smallest, closed in ((left_out + 1, []), (left_out, VIOLATION)):
            pair.b.receive(say(pair.a, [frame("ACK", delay=0, ranges=[(smallest, left_out + 1)])]), 0.0)
            self.assertEqual(of_kind(pair.b, "closed"), closed)

    def test_what_is_no_violation_is_borne(self):
        pair = Pair()
        frames = [
            frame("extension", type=0x40, body=b"?"),
            frame("PADDING"),
            frame("STREAM", b"", stream=0, offset=0),
            frame("STREAM_BLOCKED", stream=0, credit=9),
            frame("NEW_CONNECTION_ID", sequence=1, retire_prior_to=1, id=b"another1"),
        ]
        pair.b.receive(say(pair.a, frames), 0.0)
        pair.b.receive(say(pair.a, []), 0.0)
        self.assertEqual(of_kind(pair.b, "closed"), [])
        self.assertEqual(pair.b.ids.peer, b"another1")
        self.assertEqual(pair.b.control[0], frame("RETIRE_CONNECTION_ID", sequence=0))


def share(epoch, group=1, piece=b"\x09" + bytes(31)):
    return frame("KEY_SHARE", epoch=epoch, group=group, total=32, offset=0, piece=piece)


class Ends(unittest.TestCase):
    def test_the_receiver_of_close_says_nothing_more(self):
        pair = Pair()
        pair.a.close(5, 0.0)
        pair.run(0.1)
        self.assertEqual(of_kind(pair.b, "closed"), [("CLOSE_APP", 5)])
        pair.b.receive(say(pair.a, [frame("PING")]), pair.now)
        self.assertEqual(pair.b.outgoing(pair.now), [])

    def test_who_closed_answers_ever_more_seldom(self):
        pair = Pair()
        pair.a.close(5, 0.0)
        self.assertEqual(len(pair.a.outgoing(0.0)), 1)
        answers = []
        for at in range(1, 20):
            pair.a.receive(say(pair.b, [frame("PING")]), 0.0)
            answers += [at] * len(pair.a.outgoing(0.0))
        self.assertEqual(answers, [1, 2, 4, 8, 16])
        self.assertTrue(pair.a.lingers(0.0))
        self.assertFalse(pair.a.lingers(6.1))

    def test_silence_ends_a_session_after_the_shorter_timeout(self):
        for other in (0, 30_000):
            pair = Pair(own={parameters.IDLE_TIMEOUT: other}, peer={parameters.IDLE_TIMEOUT: 5000})
            for now, closed in ((4.9, []), (5.1, [("idle", None)])):
                pair.a.on_time(now)
                self.assertEqual(of_kind(pair.a, "closed"), closed)


class Exchanges(unittest.TestCase):
    def setUp(self):
        self.pair = Pair()
        self.pair.a.ping()
        self.pair.b.ping()
        self.pair.run(0.1)

    def epochs(self):
        return [(end.epochs.sending, end.epochs.newest) for end in (self.pair.a, self.pair.b)]

    def talk(self, seconds=0.1):
        """Both ends still understand each other."""
        self.pair.a.send_datagram(b"to b")
        self.pair.b.send_datagram(b"to a")
        self.pair.run(seconds)
        self.assertEqual(of_kind(self.pair.a, "datagram")[-1:], [(b"to a",)])
        self.assertEqual(of_kind(self.pair.b, "datagram")[-1:], [(b"to b",)])
        self.assertEqual(of_kind(self.pair.a, "closed") + of_kind(self.pair.b, "closed"), [])
        self.pair.a.events.clear()
        self.pair.b.events.clear()

    def test_either_end_may_begin_and_the_other_answers_at_once(self):
        for epoch, begins in enumerate([self.pair.b, self.pair.a, self.pair.b, self.pair.b, self.pair.a], 1):
            self.assertTrue(begins.begin_exchange())
            self.assertFalse(begins.begin_exchange())
            self.talk()
            self.assertEqual(self.epochs(), [(epoch, epoch)] * 2)
            self.talk(1.0)

    def test_starts_that_cross_are_one_exchange(self):
        self.assertTrue(self.pair.a.begin_exchange() and self.pair.b.begin_exchange())
        self.talk()
        self.assertEqual(self.epochs(), [(1, 1), (1, 1)])

    def test_an_exchange_bears_losses(self):
        draws = random.Random(3)
        self.pair.lose = lambda *_: draws.random() < 0.4
        self.assertTrue(self.pair.b.begin_exchange())
        self.pair.run(20.0)
        self.pair.lose = lambda *_: False
        self.talk()
        self.assertEqual(self.epochs(), [(1, 1), (1, 1)])

    def test_old_keys_stay_for_three_probe_timeouts(self):
        self.pair.b.begin_exchange()
        self.pair.a.ping()
        late = self.pair.a.outgoing(self.pair.now)[0]
        self.talk()
        self.talk(0.05)
        self.assertEqual(self.pair.b.epochs.heard, 1)
        self.assertTrue(self.pair.b.receive(late, self.pair.now))
        self.pair.run(1.0)
        self.assertEqual(list(self.pair.b.epochs.receive_keys), [1])

    def test_keys_of_three_epochs_are_the_most(self):
        for epoch in (1, 2, 3):
            own = self.pair.a.epochs
            own.on_share(self.pair.b.epochs.begin(), self.pair.now)
            self.pair.b.epochs.newest = epoch
            self.assertEqual(sorted(own.receive_keys), list(range(max(epoch - 2, 0), epoch + 1)))
            own.on_opened(epoch, self.pair.now, 0.1)
            self.assertEqual(sorted(own.receive_keys), [epoch - 1, epoch])

    def test_another_share_for_the_same_epoch_is_a_violation_and_the_same_is_not(self):
        same = self.pair.b.epochs.begin()
        for item, closed in ((same, []), (same, []), (share(1), VIOLATION)):
            self.pair.a.receive(say(self.pair.b, [item]), self.pair.now)
            self.assertEqual(of_kind(self.pair.a, "closed"), closed)

    def test_a_share_before_the_present_epoch_was_heard_is_a_violation(self):
        first = self.pair.b.epochs.begin()
        self.pair.a.receive(say(self.pair.b, [first]), self.pair.now)
        self.pair.a.receive(say(self.pair.b, [share(2)]), self.pair.now)
        self.assertEqual(of_kind(self.pair.a, "closed"), VIOLATION)

    def test_two_minutes_of_an_epoch_are_enough(self):
        self.pair.a.heard_at = self.pair.b.heard_at = 121.0
        self.pair.now = 121.0
        self.talk()
        self.assertEqual(self.epochs(), [(1, 1), (1, 1)])
