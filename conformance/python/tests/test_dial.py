"""Handshakes with the secrets of the vectors, and what may come in their way."""

import unittest

from wraith import datagram, dial, keys, packet, parameters, wire
from wraith.frames import frame
from wraith.identity import BadPeerId, Identity
from wraith.session import Session

from .responder import OWN_ID, Responder
from .vectors import read, unhex

SESSIONS = ("a session with XChaCha20-Poly1305", "a session with AES-256-GCM")


def vector(name):
    (found,) = read("handshake", name)
    return unhex(found["given"]), unhex(found["gives"])


def dial_as(given, expected=None, suites=(1,), protocols=(b"example/1",), instance=bytes(16)):
    """A dial that draws what the vector gives."""
    draws = iter([given["initiator_id"], given["initiator_ephemeral"], instance])
    who = Identity(given["initiator_seed"])
    expected = expected or Identity(given["responder_seed"]).peer_id
    return dial.Dial(who, expected, protocols, suites, 0.0, draw=lambda _: next(draws), extra=())


def fresh(suites=(1,)):
    """A dial with randomness of its own, and the one that it dials."""
    responder = Responder()
    return dial.Dial(Identity(), responder.who.peer_id, [b"example/1"], suites, 0.0), responder


def of_session(name, **options):
    """The dial of a vector of a whole session, the vector, and what INIT was."""
    given, gives = vector(name)
    suites = parameters.decode(given["finish_payload"], "FINISH")[parameters.SUITES]
    instance = parameters.decode(given["finish_payload"], "FINISH")[parameters.INSTANCE]
    dialled = dial_as(given, suites=suites, instance=instance, **options)
    (init,) = dialled.outgoing
    dialled.outgoing = []
    return dialled, given, gives, init


class Messages(unittest.TestCase):
    def test_a_dial_sends_what_the_vectors_say(self):
        for name in SESSIONS:
            dialled, given, gives, init = of_session(name)
            self.assertEqual(init, gives["init"])
            dialled.receive(gives["response"], 0.1)
            self.assertEqual(dialled.outgoing, [gives["finish"]])
            outcome = dialled.outcome
            self.assertEqual(outcome.root, gives["root_0"])
            self.assertEqual(outcome.protocol, b"example/1")
            self.assertEqual((outcome.own_id, outcome.peer_id), (given["initiator_id"], given["responder_id"]))
            self.assertFalse(outcome.waits)

    def test_first_packets_are_those_of_the_vectors(self):
        for name in SESSIONS:
            dialled, given, gives, _ = of_session(name)
            dialled.receive(gives["response"], 0.1)
            session = Session(dialled.outcome, 0.1)
            first = gives["finish_with_first_packet"].removeprefix(gives["finish"])
            own = [keys.PacketKeys.of(gives["root_0"], 0, direction, gives["suite"]) for direction in (0, 1)]
            clear = packet.protect(first, gives["suite"], session.epochs.own_header)
            number = int.from_bytes(clear[9:13], "big")
            body = packet.open_(own[0], number, clear)
            place = (clear[0], given["responder_id"], number, body)
            self.assertEqual(packet.seal(own[0], session.epochs.own_header, *place), first)
            self.assertTrue(session.receive(gives["responder_first_packet"], 0.2))

    def test_a_cookie_is_sent_back_in_an_init_that_is_otherwise_the_same(self):
        dialled, given, gives, _ = of_session(SESSIONS[0])
        _, answer = vector("COOKIE")
        for _ in range(2):
            dialled.receive(answer["datagram"], 0.1)
        self.assertEqual(dialled.outgoing, [gives["init_with_cookie"]])
        for number in range(9):
            dialled.receive(answer["datagram"][:-1] + bytes([number]), 0.1)
        self.assertEqual(len(dialled.outgoing), dial.COOKIES_AT_ONCE)
        dialled.receive(answer["datagram"][:-16] + given["cookie"][::-1], 0.1)
        dialled.on_time(0.25)
        self.assertEqual(len(dialled.outgoing), dial.COOKIES_AT_ONCE + 1)
        self.assertEqual(dialled.outgoing[-1][21:37], given["cookie"][::-1])
        dialled.receive(answer["datagram"][:-1], 0.26)
        self.assertEqual(dialled.cookie, given["cookie"][::-1])
        dialled.receive(gives["response"], 0.3)
        self.assertEqual(dialled.outgoing, [gives["finish"]])

    def test_a_refusal_ends_the_dial_with_its_code(self):
        given, gives = vector("a refusal")
        dialled = dial_as(given, protocols=(b"example/1",))
        with self.assertRaisesRegex(dial.Refused, f"code {gives['code']}"):
            dialled.receive(gives["response"], 0.1)
        self.assertIsNone(dialled.finish)

    def test_versions_end_the_dial_a_second_later_unless_they_list_the_one_that_was_tried(self):
        given, gives = vector("VERSIONS")
        dialled, _, session, _ = of_session(SESSIONS[0])
        dialled.receive(gives["datagram"], 0.1)
        other = datagram.encode(5, given["initiator_id"], datagram.NO_ID, wire.u32(2), version=0)
        dialled.receive(other[:-1], 0.1)
        self.assertIsNone(dialled.give_up_at)
        for at in (0.1, 0.3):
            dialled.receive(other, at)
        dialled.on_time(1.09)
        with self.assertRaisesRegex(dial.Refused, "versions"):
            dialled.on_time(1.1)

        dialled, _, session, _ = of_session(SESSIONS[0])
        dialled.receive(other, 0.1)
        dialled.receive(session["response"], 0.1)
        dialled.receive(other, 0.1)
        self.assertEqual(dialled.outgoing, [session["finish"]])


class Altered(unittest.TestCase):
    def test_a_response_altered_anywhere_changes_nothing(self):
        dialled, _, gives, _ = of_session(SESSIONS[0])
        genuine = gives["response"]
        # The connection id of the responder is proven by its parameter alone; all else by form or by Noise.
        for at in [*range(25 + 96), 200, len(genuine) - 1]:
            altered = bytearray(genuine)
            altered[at] ^= 1
            dialled.receive(bytes(altered), 0.1)
            self.assertIsNone(dialled.finish, at)
        dialled.receive(genuine[:-1], 0.1)
        dialled.receive(genuine + b"\x00", 0.1)
        self.assertEqual(dialled.impostors, 0)
        dialled.receive(genuine, 0.1)
        self.assertEqual(dialled.outgoing, [gives["finish"]])

    def test_its_own_init_says_nothing_to_a_dial(self):
        dialled, _, _, init = of_session(SESSIONS[0])
        dialled.receive(init, 0.1)
        self.assertEqual((dialled.outgoing, dialled.finish), ([], None))


class Impostors(unittest.TestCase):
    def test_another_peer_id_is_borne_for_a_while(self):
        stranger = Identity(bytes(32)).peer_id
        dialled, _, gives, _ = of_session(SESSIONS[0], expected=stranger)
        dialled.receive(gives["response"], 0.1)
        self.assertEqual((dialled.finish, dialled.impostors), (None, 1))
        dialled.on_time(1.09)
        self.assertEqual(len(dialled.outgoing), 1)
        with self.assertRaises(dial.Refused):
            dialled.on_time(1.1)

    def test_the_genuine_one_is_taken_behind_impostors(self):
        dialled, _, gives, _ = of_session(SESSIONS[0])
        genuine, dialled.expected = dialled.expected, Identity(bytes(32)).peer_id
        dialled.receive(gives["response"], 0.1)
        dialled.expected = genuine
        dialled.receive(gives["response"], 0.2)
        self.assertEqual(dialled.outgoing, [gives["finish"]])

    def test_only_so_many_of_them_are_read_until_init_is_repeated(self):
        for repeats in (False, True):
            dialled, _, gives, _ = of_session(SESSIONS[0])
            genuine, dialled.expected = dialled.expected, Identity(bytes(32)).peer_id
            for at in range(dial.IMPOSTORS):
                dialled.receive(gives["response"], 0.1 + at / 100)
            dialled.expected = genuine
            dialled.receive(gives["response"], 0.2)
            self.assertIsNone(dialled.finish)
            if repeats:
                dialled.on_time(0.3)
                dialled.receive(gives["response"], 0.9)
                self.assertIsNotNone(dialled.finish)
                dialled.on_time(5)
            else:
                with self.assertRaises(dial.Refused):
                    dialled.on_time(1.1)

    def test_what_does_not_follow_from_both_lists_counts_as_another_peer(self):
        for changes in [
            {parameters.SUITE: wire.u16(2), parameters.SUITES: wire.u16(2) + wire.u16(1)},
            {parameters.SUITE: wire.u16(3)},
            {parameters.PROTOCOL: b"example/2"},
            {parameters.FIRST_VERSION: wire.u32(2)},
            {parameters.MAX_DATAGRAM: wire.varint(1199)},
            {parameters.PEER: Identity(bytes(32)).peer_id},
        ]:
            dialled, responder = fresh(suites=(1, 2))
            dialled.receive(responder.answer(dialled.outgoing[0], changes), 0.1)
            self.assertEqual((dialled.impostors, dialled.finish), (1, None), changes)

    def test_codes_of_refusals_have_32_bits(self):
        left_out = (parameters.SUITE, parameters.PROTOCOL)
        for code, impostors in ((1 << 32, 1), ((1 << 32) - 1, 0)):
            dialled, responder = fresh()
            answer = responder.answer(dialled.outgoing[0], {parameters.REFUSAL: wire.varint(code)}, left_out)
            if not impostors:
                with self.assertRaises(dial.Refused):
                    dialled.receive(answer, 0.1)
            else:
                dialled.receive(answer, 0.1)
            self.assertEqual(dialled.impostors, impostors)

    def test_a_refusal_of_another_peer_does_not_end_the_dial(self):
        dialled, _ = fresh()
        refusal = {parameters.REFUSAL: wire.varint(3)}
        left_out = (parameters.SUITE, parameters.PROTOCOL)
        answer = Responder(b"\x02" * 32).answer(dialled.outgoing[0], refusal, left_out)
        dialled.receive(answer, 0.1)
        self.assertEqual(dialled.impostors, 1)
        with self.assertRaises(dial.Refused):
            dialled.receive(Responder().answer(dialled.outgoing[0], refusal, left_out), 0.1)

    def test_a_peer_id_that_belongs_to_another_key_is_that_of_an_impostor(self):
        dialled, genuine = fresh()
        liar = Responder(b"\x02" * 32)
        dialled.receive(liar.answer(dialled.outgoing[0], {parameters.PEER: genuine.who.peer_id}), 0.1)
        self.assertEqual((dialled.impostors, dialled.finish), (1, None))

    def test_a_short_response_is_dropped(self):
        for short, finished in ((1, False), (0, True)):
            dialled, responder = fresh()
            dialled.receive(responder.answer(dialled.outgoing[0], size=datagram.MIN_SIZE - short), 0.1)
            self.assertEqual((dialled.impostors, dialled.finish is not None), (0, finished))

    def test_a_response_whose_ids_differ_is_dropped(self):
        dialled, responder = fresh()
        dialled.receive(responder.answer(dialled.outgoing[0], outer_id=b"otherone"), 0.1)
        self.assertEqual((dialled.impostors, dialled.finish), (0, None))

    def test_a_peer_id_that_is_none_is_not_dialled(self):
        with self.assertRaises(BadPeerId):
            dial.Dial(Identity(), bytes(32), [b"a"], [1], 0.0)


class Agreement(unittest.TestCase):
    def test_both_ends_come_to_the_same_root(self):
        dialled, responder = fresh()
        dialled.receive(responder.answer(dialled.outgoing[0], {parameters.ASK: b""}), 0.1)
        values, root = responder.take(dialled.finish)
        self.assertEqual(root, dialled.outcome.root)
        self.assertEqual(responder.remote_static, dialled.who.static_public)
        self.assertEqual(values[parameters.PEER], dialled.who.peer_id)
        self.assertEqual(values[parameters.RESPONDER_ID], OWN_ID)
        self.assertTrue(dialled.outcome.waits)


class Repeats(unittest.TestCase):
    def test_init_and_finish_are_repeated_until_they_are_answered(self):
        dialled, _, gives, init = of_session(SESSIONS[0])
        times = []
        for tick in range(500):
            dialled.on_time(tick / 100)
            times += [tick / 100] * len(dialled.outgoing)
            self.assertTrue(all(again == init for again in dialled.outgoing))
            dialled.outgoing = []
        self.assertEqual(times, [0.25, 0.75, 1.75, 2.75, 3.75, 4.75])
        dialled.receive(gives["response"], 5.0)
        dialled.outgoing = []
        dialled.on_time(5.25)
        self.assertEqual(dialled.outgoing, [gives["finish"]])
        dialled.confirm()
        self.assertIsNone(dialled.timeout)
        dialled.on_time(9.0)
        self.assertEqual(dialled.outgoing, [gives["finish"]])


class Choice(unittest.TestCase):
    def test_both_ends_come_to_the_same_suite(self):
        for ours, theirs, chosen in [
            ([1, 2], [2, 1], 1),
            ([2, 1], [2, 1], 2),
            ([2, 1], [1], 1),
            ([9, 2, 1], [2, 7, 1], 2),
            ([3, 2, 1], [1, 2, 3], 2),
            ([2], [1], None),
        ]:
            self.assertEqual(dial.choose_suite(ours, theirs), chosen)
            self.assertEqual(dial.choose_suite(theirs, ours), chosen)


class FirstPacket(unittest.TestCase):
    def test_one_packet_fits_behind_finish(self):
        dialled, _, gives, _ = of_session(SESSIONS[0])
        dialled.receive(gives["response"], 0.1)
        session = Session(dialled.outcome, 0.1)
        session.datagrams.append(frame("DATAGRAM", bytes(100)))
        session.datagrams.append(frame("DATAGRAM", bytes(1000)))
        (behind,) = session.outgoing(0.1, datagram.MIN_SIZE - len(dialled.finish))
        self.assertLessEqual(len(dialled.finish + behind), datagram.MIN_SIZE)
        self.assertEqual(len(session.datagrams), 1)
