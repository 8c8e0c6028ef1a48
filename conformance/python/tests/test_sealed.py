"""Sealed messages, made and opened here, and what is no message."""

import dataclasses
import hashlib
import io
import random
import unittest

from wraith import identity, noise, sealed
from wraith.identity import BadPeerId, Identity
from wraith.wire import Malformed

ALICE, BOB, EVE = (Identity(bytes([seed]) * 32) for seed in (1, 2, 3))
ORDER = 2**252 + 27742317777372353535851937790883648493


def sealed_message(body, sign=False, **options):
    return b"".join(sealed.seal_message(ALICE, BOB.peer_id, io.BytesIO(body), sign, **options))


def opened(message, who=BOB):
    """The body up to where it can be trusted, and whether it is whole."""
    body = b""
    try:
        for segment in sealed.Opener(who, io.BytesIO(message)).segments():
            body += segment
    except Malformed:
        return body, False
    return body, True


class Datagrams(unittest.TestCase):
    def test_what_is_sealed_is_opened_by_the_recipient_alone(self):
        for sign in (False, True):
            datagram = sealed.seal_datagram(ALICE, BOB.peer_id, b"hello", sign)
            self.assertEqual(len(datagram), 5 + (218 if sign else 154))
            fields, body = sealed.open_datagram(BOB, datagram)
            self.assertEqual((fields.sender, fields.signed, body), (ALICE.peer_id, sign, b"hello"))
            with self.assertRaises(Malformed):
                sealed.open_datagram(EVE, datagram)

    def test_one_that_was_altered_anywhere_is_refused(self):
        for sign in (False, True):
            datagram = sealed.seal_datagram(ALICE, BOB.peer_id, b"hello", sign)
            for at in range(len(datagram)):
                altered = bytearray(datagram)
                altered[at] ^= 0x80
                for bad in (bytes(altered), datagram[:at]):
                    with self.assertRaises(Malformed, msg=at):
                        sealed.open_datagram(BOB, bad)
            with self.assertRaises(Malformed):
                sealed.open_datagram(BOB, datagram + b"\x00")

    def test_fields_that_must_be_refused_are(self):
        fields = sealed.Fields.fresh(ALICE, False)
        for bad in (
            dataclasses.replace(fields, sender=EVE.peer_id),
            dataclasses.replace(fields, sender=bytes(32)),
            dataclasses.replace(fields, flags=2),
            dataclasses.replace(fields, flags=0x81),
        ):
            datagram = sealed.seal_datagram(ALICE, BOB.peer_id, b"", fields=bad)
            with self.assertRaises(sealed.Forged, msg=bad):
                sealed.open_datagram(BOB, datagram)

    def test_payloads_that_are_too_short_are_refused(self):
        for flags, size in ((0, 56), (1, 57), (1, 57 + 63)):
            payload = dataclasses.replace(sealed.Fields.fresh(ALICE, False), flags=flags).encode() + bytes(64)
            prologue = b"WRAITH\x00\x00\x00\x01\x61" + BOB.peer_id
            message, _ = noise.write_x(prologue, ALICE.static_secret, b"e" * 32, BOB.static_public, payload[:size])
            with self.assertRaises(Malformed):
                sealed.open_datagram(BOB, b"\x61" + message)

    def test_a_signature_of_another_or_of_another_body_is_refused(self):
        for who, text in ((EVE, None), (ALICE, b"of something else")):
            liar = Identity(ALICE.seed)
            liar.sign = lambda signed, who=who, text=text: who.sign(text or signed)
            with self.assertRaises(sealed.Forged):
                sealed.open_datagram(BOB, sealed.seal_datagram(liar, BOB.peer_id, b"hello", sign=True))
            message = b"".join(sealed.seal_message(liar, BOB.peer_id, io.BytesIO(bytes(70_000)), sign=True))
            self.assertEqual(opened(message), (bytes(65_536), False))

    def test_nobody_seals_to_what_is_no_peer_id(self):
        with self.assertRaises(BadPeerId):
            sealed.seal_datagram(ALICE, bytes(32), b"")

    def test_a_signature_with_an_r_of_small_order_is_none(self):
        text, point = b"text", b"\x01" + bytes(31)
        secret = int.from_bytes(ALICE.static_secret, "little")
        challenge = int.from_bytes(hashlib.sha512(point + ALICE.peer_id + text).digest(), "little")
        signature = point + (challenge * secret % ORDER).to_bytes(32, "little")
        self.assertFalse(identity.verifies(ALICE.peer_id, signature, text))
        self.assertTrue(identity.verifies(ALICE.peer_id, ALICE.sign(text), text))


class Messages(unittest.TestCase):
    def test_bodies_of_any_length_come_out_as_they_went_in(self):
        for size in (0, 1, 65_535, 65_536, 65_537, 2 * 65_536, 200_000):
            body = random.Random(size).randbytes(size)
            segments = max(1, -(-size // 65_536))
            for sign in (False, True):
                message = sealed_message(body, sign)
                self.assertEqual(len(message), 161 + size + 20 * segments + 64 * sign)
                self.assertEqual(opened(message), (body, True))
                self.assertEqual(opened(message, who=BOB), (body, True))

    def test_only_the_beginning_comes_out_of_one_that_was_altered_or_cut_off(self):
        body = random.Random(0).randbytes(150_000)
        message = sealed_message(body, sign=True)
        second = 161 + 20 + 65_536
        third = second + 20 + 65_536
        for at, trusted in (
            (161, 0),
            (163, 0),
            (170, 0),
            (second, 1),
            (third - 1, 1),
            (third, 2),
            (len(message) - 1, 2),
        ):
            altered = bytearray(message)
            altered[at] ^= 0x80
            for bad in (bytes(altered), message[:at]):
                self.assertEqual(opened(bad), (body[: trusted * 65_536], False), at)
        self.assertEqual(opened(message + b"\x00"), (body[: 2 * 65_536], False))

    def test_segments_keep_their_order(self):
        message = sealed_message(bytes(150_000))
        size = 20 + 65_536
        first, second, rest = (message[161:][at : at + size] for at in (0, size, 2 * size))
        self.assertEqual(opened(message[:161] + second + first + rest), (b"", False))
        self.assertEqual(opened(message[:161] + first + rest), (bytes(65_536), False))

    def test_an_empty_last_segment_is_allowed_and_a_short_one_before_is_not(self):
        _, state = self.head()
        for sizes, whole in (((65_536, 0), True), ((100, 0), False), ((65_537,), False)):
            out = self.head()[0]
            for number, size in enumerate(sizes):
                last = number == len(sizes) - 1
                header = (size | last << 31).to_bytes(4, "big")
                nonce = bytes(4) + (2 * number + last).to_bytes(8, "little")
                out += header + sealed._segment_cipher(state).encrypt(nonce, bytes(size), header)
            self.assertEqual(opened(out), (bytes(sum(sizes)), True) if whole else (b"", False))

    def test_a_message_is_no_datagram_and_bears_no_other_number(self):
        message = sealed_message(b"hello")
        with self.assertRaises(sealed.Forged):
            sealed.open_datagram(BOB, message)
        for bad in (b"WRAITHS\x02" + message[8:], sealed.seal_datagram(ALICE, BOB.peer_id, bytes(200)), b""):
            with self.assertRaises(sealed.Forged):
                sealed.Opener(BOB, io.BytesIO(bad))

    def head(self):
        """The head of a message with fixed secrets, and the Noise state behind it."""
        fields = dataclasses.replace(sealed.Fields.fresh(ALICE, False), id=bytes(16), time=0).encode()
        prologue = b"WRAITH\x00\x00\x00\x01" + sealed.MESSAGE + BOB.peer_id
        message, state = noise.write_x(prologue, ALICE.static_secret, b"e" * 32, BOB.static_public, fields)
        return sealed.MESSAGE + message, state


class Hedge(unittest.TestCase):
    def test_no_two_messages_share_an_ephemeral_key_even_when_randomness_repeats(self):
        fields = sealed.Fields.fresh(ALICE, False)
        other = dataclasses.replace(fields, id=b"another id here!")
        same = {"fields": fields, "fresh": bytes(range(32))}
        datagrams = [
            sealed.seal_datagram(ALICE, BOB.peer_id, b"one", **same),
            sealed.seal_datagram(ALICE, BOB.peer_id, b"two", **same),
            sealed.seal_datagram(ALICE, EVE.peer_id, b"one", **same),
            sealed.seal_datagram(ALICE, BOB.peer_id, b"one", fields=other, fresh=same["fresh"]),
            sealed.seal_datagram(ALICE, BOB.peer_id, b"one", fields=fields, fresh=bytes(32)),
        ]
        messages = [sealed_message(b"one", **same), sealed_message(b"two", **same)]
        ephemerals = [datagram[1:33] for datagram in datagrams] + [message[8:40] for message in messages]
        self.assertEqual(len(set(ephemerals)), 7)
        self.assertEqual(datagrams[0], sealed.seal_datagram(ALICE, BOB.peer_id, b"one", **same))
