"""The vectors of this repository, against the modules without state."""

import copy
import hashlib
import unittest

from blake3 import blake3

from wraith import frames, identity, keys, noise, packet, parameters, wire

from .vectors import read, unhex


class Published(unittest.TestCase):
    def test_blake3_is_that_of_its_authors(self):
        for vector in read("published", "BLAKE3"):
            given, gives = vector["given"], vector["gives"]
            message = bytes(at % 251 for at in range(given["input_len"]))
            self.assertEqual(blake3(message).hexdigest(), gives["hash"])
            self.assertEqual(keys.derive_key(given["context"], message).hex(), gives["derive_key"])
            self.assertEqual(keys.keyed(bytes.fromhex(given["key"]), message).hex(), gives["keyed"])

    def test_aeads_are_the_published_ones(self):
        for vector in read("published", "XChaCha20-Poly1305", "AES-256-GCM"):
            given = unhex({key: value for key, value in vector["given"].items() if key != "source"})
            if vector["name"] == "AES-256-GCM":
                sealed = packet.AESGCM(given["key"]).encrypt(given["nonce"], given["plaintext"], given["aad"])
            else:
                seal = packet.bindings.crypto_aead_xchacha20poly1305_ietf_encrypt
                sealed = seal(given["plaintext"], given["aad"], given["nonce"], given["key"])
            self.assertEqual(sealed.hex(), vector["gives"]["sealed"])

    def test_noise_is_that_of_other_implementations(self):
        for vector in read("published", "Noise XX"):
            given = {key: bytes.fromhex(value) for key, value in vector["given"].items() if "_" in key}
            prologue = bytes.fromhex(vector["given"]["prologue"])
            payloads = [bytes.fromhex(payload) for payload in vector["given"]["payloads"]]
            messages = [bytes.fromhex(message) for message in vector["gives"]["messages"]]
            initiator = noise.Initiator(prologue, given["init_static"], given["init_ephemeral"])
            self.assertEqual(initiator.write_first(payloads[0]), messages[0])
            self.assertEqual(initiator.read_second(messages[1]), payloads[1])
            self.assertEqual(initiator.remote_static, identity.x25519_public(given["resp_static"]))
            self.assertEqual(initiator.write_third(payloads[2]), messages[2])
            if "h" in vector["gives"]:
                self.assertEqual(initiator.state.h.hex(), vector["gives"]["h"])

    def test_x25519_is_that_of_rfc_7748_and_refuses_zero(self):
        for vector in read("published", "X25519"):
            given, gives = unhex(vector["given"] | {"source": ""}), vector["gives"]
            self.assertEqual(identity.x25519(given["secret"], given["public"]).hex(), gives["shared"])
        with self.assertRaises(ValueError):
            identity.x25519(b"\x01" * 32, bytes(32))


class Identities(unittest.TestCase):
    def test_a_seed_gives_its_peer_id_and_noise_keys(self):
        for vector in read("identity"):
            if "seed" not in vector["given"]:
                continue
            who, gives = identity.Identity(bytes.fromhex(vector["given"]["seed"])), vector["gives"]
            self.assertEqual(who.peer_id.hex(), gives["peer_id"])
            self.assertEqual(who.static_public.hex(), gives["static_public"])
            self.assertEqual(who.static_secret.hex(), gives["static_secret"])
            self.assertEqual(identity.to_text(who.peer_id), gives["text"])
            self.assertEqual(identity.from_text(gives["text"]), who.peer_id)
            with self.assertRaises(identity.BadPeerId):
                identity.from_text(gives["text"].upper())

    def test_bad_peer_ids_are_refused(self):
        bad = [vector["given"]["peer_id"] for vector in read("identity") if vector["gives"].get("refused")]
        self.assertGreater(len(bad), 10)
        for peer_id in bad:
            with self.assertRaises(identity.BadPeerId, msg=peer_id):
                identity.check_peer_id(bytes.fromhex(peer_id))


class Keys(unittest.TestCase):
    def test_roots_keys_and_exports_follow_from_the_handshake(self):
        for vector in read("keys") + read("rekey", "keys of an epoch"):
            given, gives = vector["given"], vector["gives"]
            secrets = unhex({key: value for key, value in given.items() if key != "label"})
            if "root" in given:
                place = (given["direction"], given["suite"])
                made = keys.PacketKeys.of(secrets["root"], given["epoch"], *place)
                self.assertEqual(made.key.hex(), gives["packet_key"])
                self.assertEqual(made.prefix.hex(), gives["nonce_prefix"])
                if "header_key" in gives:
                    self.assertEqual(keys.header_key(secrets["root"], *place).hex(), gives["header_key"])
            elif "label" in given:
                exporter = keys.exporter(secrets["root_0"], given["suite"])
                self.assertEqual(exporter.hex(), gives["exporter"])
                self.assertEqual(keys.derive_key(given["label"], exporter).hex(), gives["exported"])
            elif "h" in given:
                self.assertEqual(keys.first_root(**secrets).hex(), gives["root_0"])
            else:
                self.assertEqual(keys.finish_mac_key(**secrets).hex(), gives["finish_mac_key"])

    def test_an_exchange_gives_the_next_root(self):
        for vector in read("rekey", "root of the next epoch"):
            given, gives = unhex(vector["given"]), unhex(vector["gives"])
            shares = [identity.x25519_public(given[f"{role}_secret"]) for role in ("initiator", "responder")]
            self.assertEqual(shares, [gives["initiator_share"], gives["responder_share"]])
            shared = identity.x25519(given["initiator_secret"], shares[1])
            self.assertEqual(shared, gives["shared"])
            root = keys.next_root(given["root"], shared, *shares, given["epoch"])
            self.assertEqual(root, gives["next_root"])
            (frame,) = frames.decode(gives["initiator_frame"])
            self.assertEqual((frame["epoch"], frame["piece"]), (given["epoch"], shares[0]))


class Packets(unittest.TestCase):
    def test_masks_come_from_the_sample(self):
        for vector in read("published", "header protection") + read("packets"):
            if "sample" not in vector["given"]:
                continue
            given = unhex({key: value for key, value in vector["given"].items() if key != "source"})
            mask = packet.mask(given["suite"], given["header_key"], given["sample"])
            self.assertEqual(mask.hex(), vector["gives"]["mask"])
            if "header" in given:
                datagram = packet.protect(given["header"] + given["sample"], given["suite"], given["header_key"])
                self.assertEqual(datagram[:13].hex(), vector["gives"]["protected_header"])

    def test_packets_are_sealed_and_opened(self):
        for vector in read("packets") + read("rekey"):
            if "packet_key" not in vector["given"]:
                continue
            number = int(vector["given"]["number"])
            given = unhex({key: value for key, value in vector["given"].items() if key != "number"})
            made = keys.PacketKeys(given["suite"], given["packet_key"], given["nonce_prefix"])
            place = (given["first"], given["destination"], number, given["body"])
            datagram = packet.seal(made, given["header_key"], *place)
            self.assertEqual(datagram.hex(), vector["gives"]["datagram"], vector["name"])
            clear = packet.protect(datagram, given["suite"], given["header_key"])
            self.assertEqual(clear[:13].hex(), vector["gives"]["header"])
            self.assertEqual(packet.open_(made, number, clear), given["body"])
            self.assertIsNone(packet.open_(made, number + 1, clear))

    def test_numbers_are_completed_as_in_rfc_9000(self):
        self.assertEqual(packet.full_number(0x9B32, 0xA82F30EB), 0x9B32 + (1 << 32))
        for expected, number in [(0, 0), (1 << 32, (1 << 32) - 1), ((1 << 32) - 1, 1 << 32), (1 << 61, (1 << 61) - 9)]:
            self.assertEqual(packet.full_number(number & 0xFFFF_FFFF, expected), number)
        # Halfway between two numbers the larger one is meant; behind the largest number there is none.
        self.assertEqual(packet.full_number(0, (1 << 32) + (1 << 31)), 1 << 33)
        self.assertEqual(packet.full_number(0, (1 << 62) - 1), (1 << 62) - (1 << 32))


class Frames(unittest.TestCase):
    def test_varints_have_their_shortest_form(self):
        for vector in read("frames", "varint"):
            value = int(vector["given"]["value"])
            self.assertEqual(wire.varint(value).hex(), vector["gives"]["bytes"])
            self.assertEqual(wire.Reader(bytes.fromhex(vector["gives"]["bytes"])).varint(), value)

    def test_frames_are_written_and_read(self):
        for vector in read("frames"):
            if "fields" not in vector["given"]:
                continue
            fields = {key: _field(key, value) for key, value in vector["given"]["fields"].items()}
            count = fields.pop("count") if vector["name"] == "PADDING" else 1
            frame = frames.Frame(vector["name"], fields)
            encoded = bytes.fromhex(vector["gives"]["bytes"])
            self.assertEqual(frames.encode(frame) * count, encoded)
            self.assertEqual(frames.decode(encoded), [frame] * count)

    def test_what_no_frame_is_gets_refused(self):
        bad = [vector for vector in read("frames") if vector["gives"].get("violation")]
        self.assertGreater(len(bad), 10)
        for vector in bad:
            with self.assertRaises(wire.Malformed, msg=vector["name"]):
                frames.decode(bytes.fromhex(vector["given"]["frames"]))

    def test_lengths_of_a_packet_add_up_exactly(self):
        hello = frames.frame("DATAGRAM", b"hello")
        encoded = frames.encode(hello)
        self.assertEqual(frames.decode_packet(packet.join(b"hello", encoded)), [hello])
        for body in (packet.join(b"hell", encoded), packet.join(b"hello!", encoded), b"\x00", b"\x00\x01"):
            with self.assertRaises(wire.Malformed):
                frames.decode_packet(body)


class Parameters(unittest.TestCase):
    def test_payloads_are_written_and_read(self):
        for vector in read("parameters"):
            if "parameters" not in vector["given"]:
                continue
            values = [(int(key), bytes.fromhex(value)) for key, value in vector["given"]["parameters"]]
            payload = bytes.fromhex(vector["gives"]["payload"])
            self.assertEqual(parameters.encode(values), payload)
            decoded = parameters.decode(payload + bytes(9), vector["name"].split()[0])
            self.assertEqual(sorted(decoded), sorted(key for key, _ in values))

    def test_payloads_that_are_to_be_refused_are(self):
        bad = [vector for vector in read("parameters") if vector["gives"].get("refused")]
        self.assertGreater(len(bad), 150)
        for vector in bad:
            payload = bytes.fromhex(vector["given"]["payload"])
            with self.assertRaises(wire.Malformed, msg=vector["name"]):
                parameters.decode(payload, vector["given"]["message"])


class Copies(unittest.TestCase):
    def test_a_copy_of_the_noise_state_is_untouched_by_a_message_that_does_not_open(self):
        initiator = noise.Initiator(b"", hashlib.sha256(b"s").digest(), hashlib.sha256(b"e").digest())
        initiator.write_first(b"")
        before, tried = vars(initiator.state).copy(), copy.deepcopy(initiator)
        with self.assertRaises(wire.Malformed):
            tried.read_second(identity.x25519_public(b"\x07" * 32) + bytes(64))
        self.assertNotEqual(vars(tried.state), before)
        self.assertEqual(vars(initiator.state), before)


def _field(key, value):
    if key == "ranges":
        return [(int(low), int(high)) for low, high in value]
    if key in ("id", "piece", "body", "data"):
        return bytes.fromhex(value)
    return int(value)
