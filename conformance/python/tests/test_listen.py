"""Sessions with `wraith-cli listen` over UDP."""

import random
import socket
import time
import unittest

from wraith import datagram, dial, parameters
from wraith.client import Client
from wraith.frames import frame
from wraith.identity import Identity, from_text
from wraith.noise import Initiator
from wraith.wire import u32, u64

from .listener import BENCH, PING, Listener


class Lossy(Client):
    """A client one in ten of whose datagrams gets lost, in both directions, and the first of each handshake message."""

    def __init__(self, *arguments, **options):
        self.draws, self.kinds = random.Random(11), set()
        super().__init__(*arguments, **options)

    def _put(self, data, address=None):
        kind = data[0] if data[0] & 0x80 else None
        first = kind is not None and kind not in self.kinds
        self.kinds.add(kind)
        if not first and self.draws.random() > 0.1:
            super()._put(data, address)


class Live(unittest.TestCase):
    """One listener for all, since each test makes sessions of its own."""

    @classmethod
    def setUpClass(cls):
        cls.listener = Listener()

    @classmethod
    def tearDownClass(cls):
        cls.listener.stop()

    def dial(self, *arguments, **options):
        client = self.listener.dial(*arguments, **options)
        self.addCleanup(client.close)
        return client

    def echo(self, client, data):
        client.session.send_datagram(data)
        self.assertEqual(client.next("datagram"), (data,))


class Sessions(Live):
    def test_probes_come_back_with_both_suites(self):
        for suite in (1, 2):
            client = self.dial(suites=[suite])
            self.assertEqual((client.session.outcome.suite, client.session.outcome.protocol), (suite, PING))
            for size in (4, 56, 1000):
                self.echo(client, random.randbytes(size))

    def test_the_listener_sees_who_came_and_how_it_ended(self):
        client = self.listener.dial()
        self.echo(client, b"here")
        who = client.dial.who.peer_id
        connected = self.listener.next("connected")
        while from_text(connected["peer"]) != who:
            connected = self.listener.next("connected")
        self.assertEqual(connected["protocol"], PING.decode())
        client.close(42)
        closed = self.listener.next("closed")
        while from_text(closed["peer"]) != who:
            closed = self.listener.next("closed")
        self.assertEqual(closed["code"], 42)

    def test_a_violation_is_answered_with_close_1(self):
        client = self.dial()
        self.echo(client, b"before")
        client.session.control.append(frame("AUTHORIZED"))
        self.assertEqual(client.next("closed"), ("CLOSE", 1))

    def test_lost_messages_and_packets_are_made_up_for(self):
        client = self.dial(BENCH, make=Lossy)
        self.assertIn(0x80 | datagram.FINISH, client.kinds)
        stream = client.session.open(unidirectional=True)
        client.session.write(stream, random.randbytes(300_000), fin=True)
        self.assertEqual(client.next("delivered", 15), (stream,))
        self.assertEqual(counts(client, 0)[0], 300_000)

    def test_a_client_that_moves_is_asked_at_its_new_address_and_followed(self):
        client = self.dial()
        self.echo(client, b"here")
        for _ in range(2):
            asked = []
            client.session.handlers["PATH_CHALLENGE"] = lambda item, now, asked=asked: (
                asked.append(item["data"]),
                client.session._on_challenge(item, now),
            )
            client.move()
            client.session.send_datagram(b"elsewhere")
            # What is sent before the address is proven goes to the former one, and is lost.
            client.wait(lambda asked=asked: asked, 5)
            client.rest(time.monotonic() + 0.3)
            client.session.events.clear()
            self.echo(client, b"there")


class Benchmarks(Live):
    def test_datagrams_are_counted(self):
        client = self.dial(BENCH)
        for _ in range(300):
            client.session.send_datagram(bytes(900))
        # The question shall not overtake what it asks about.
        client.wait(lambda: not client.session.datagrams, 5)
        size, packets, nanoseconds, _ = counts(client, 300)
        self.assertEqual((size, packets), (300 * 900, 300))
        self.assertLess(nanoseconds, 10**10)

    def test_a_stream_longer_than_its_credit_arrives_whole(self):
        client = self.dial(BENCH)
        size = client.session.outcome.peer[parameters.STREAM_CREDIT] + 200_000
        stream = client.session.open(unidirectional=True)
        client.session.write(stream, bytes(size), fin=True)
        self.assertEqual(client.next("delivered", 15), (stream,))
        self.assertEqual(counts(client, 0)[0], size)


class Exchanges(Live):
    def test_keys_change_as_often_as_the_client_likes(self):
        for suite in (1, 2):
            client = self.dial(suites=[suite])
            for epoch in range(1, 7):
                self.echo(client, b"in the epoch before")
                client.wait(client.session.epochs.may_begin, 5)
                self.assertTrue(client.session.begin_exchange())
                client.wait(lambda: client.session.epochs.sending == epoch, 5)  # noqa: B023 waited for here
                self.echo(client, b"in the new one")
                self.assertEqual(client.session.epochs.heard, epoch)


class Refusals(Live):
    def test_a_protocol_that_nobody_speaks_is_refused_with_code_3(self):
        with self.assertRaisesRegex(dial.Refused, "code 3"):
            self.listener.dial(b"no-such/1")

    def test_a_suite_that_nobody_speaks_is_refused_with_code_2(self):
        with self.assertRaisesRegex(dial.Refused, "code 2"):
            self.listener.dial(suites=[0x7777])

    def test_another_peer_id_than_the_expected_one_ends_the_dial(self):
        with self.assertRaisesRegex(dial.Refused, "another PeerId"):
            Client(Identity(), Identity().peer_id, self.listener.address, [PING])

    def test_an_unknown_version_is_answered_with_those_that_are_spoken(self):
        with stranger(self.listener.address) as bare:
            bare.send(init(version=0x0A1A2A3A))
            parsed = datagram.decode(bare.recv(2048))
            self.assertEqual((parsed.kind, parsed.destination), (datagram.VERSIONS, b"stranger"))
            self.assertIn(datagram.VERSION, datagram.versions(parsed))

    def test_a_short_init_is_not_answered(self):
        with stranger(self.listener.address) as bare:
            bare.send(init()[:-1])
            # The answer to this one would come behind it.
            bare.send(init(version=2))
            self.assertEqual(datagram.decode(bare.recv(2048)).kind, datagram.VERSIONS)


class Cookies(unittest.TestCase):
    def test_a_dial_passes_a_listener_under_load(self):
        listener = Listener()
        self.addCleanup(listener.stop)
        with stranger(listener.address) as bare:
            until, client = time.monotonic() + 20, None
            # A listener that has had a few milliseconds to recover asks for no cookie: then all begins again.
            while client is None or (client.dial.cookies == 0 and time.monotonic() < until):
                self.put_under_load(bare)
                client = listener.dial()
                self.addCleanup(client.close)
            self.assertGreaterEqual(client.dial.cookies, 1)
            client.session.send_datagram(b"through")
            self.assertEqual(client.next("datagram"), (b"through",))

    def put_under_load(self, bare):
        """Begins handshakes that nobody goes on with, each with a key of its own, until it asks for cookies."""
        until, asked = time.monotonic() + 5, False
        while not asked and time.monotonic() < until:
            bare.send(init())
            asked = bare.recv(2048)[0] == 0x80 | datagram.COOKIE
        self.assertTrue(asked)


def counts(client, sent):
    """What the listener has counted: bytes, packets, nanoseconds from the first to the last, and of its processor."""
    question = client.session.open()
    client.session.write(question, u64(sent), fin=True)
    answer = b""
    ends = False
    while not ends:
        stream, data, ends = client.next("stream")
        assert stream == question
        answer += data
    return [int.from_bytes(answer[at : at + 8], "big") for at in range(0, 32, 8)]


def init(version=datagram.VERSION):
    """A good INIT of a fresh handshake."""
    who = Identity()
    values = [
        (parameters.VERSIONS, u32(version)),
        (parameters.FIRST_VERSION, u32(version)),
        (parameters.SUITES, bytes([0, 1])),
        (parameters.PROTOCOLS, bytes([len(PING)]) + PING),
        (parameters.INITIATOR_ID, b"stranger"),
    ]
    noise = Initiator(b"WRAITH" + u32(version), who.static_secret, random.randbytes(32))
    message = noise.write_first(parameters.encode(values).ljust(datagram.MIN_SIZE - 41 - 32, b"\x00"))
    return datagram.init(b"stranger", message, version=version)


def stranger(address):
    bare = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    bare.settimeout(5)
    bare.connect(address)
    return bare
