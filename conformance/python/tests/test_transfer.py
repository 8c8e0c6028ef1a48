"""Messages, tickets and lists of file transfer, by the vectors."""

import ipaddress
import unittest

from blake3 import blake3

from wraith import ticket, transfer, tree
from wraith.wire import Malformed, varint

from .vectors import read


def body(name, fields):
    """The body of a message whose fields a vector gives, and its type."""
    octets = {key: bytes.fromhex(fields[key]) for key in ("content_id", "token", "top", "values") if key in fields}
    numbers = {key: varint(int(fields[key])) for key in ("size", "index", "code") if key in fields}
    layouts = {
        "Get": (transfer.GET, [bytes([fields.get("kind", 0)]), octets.get("content_id"), octets.get("token")]),
        "Offer": (transfer.OFFER, [numbers.get("size"), bytes([fields.get("complete", 0)]), octets.get("top")]),
        "GetList": (transfer.GET_LIST, [bytes([fields.get("level", 0)]), numbers.get("index")]),
        "List": (transfer.LIST, [bytes([fields.get("level", 0)]), numbers.get("index"), octets.get("values")]),
        "Done": (transfer.DONE, [octets.get("content_id")]),
        "DoneAck": (transfer.DONE_ACK, []),
        "Refused": (transfer.REFUSED, [numbers.get("code")]),
        "Cancel": (transfer.CANCEL, [numbers.get("code")]),
    }
    kind, parts = layouts[name]
    return kind, b"".join(parts)


class Messages(unittest.TestCase):
    def test_messages_are_written_and_read(self):
        for vector in read("transfer"):
            if "fields" not in vector["given"]:
                continue
            fields, number = vector["given"]["fields"], int(vector["given"]["fields"]["transfer"])
            if vector["name"] == "Want":
                message = transfer.want(number, [int(chunk) for chunk in fields["chunks"]])
            else:
                kind, text = body(vector["name"], fields)
                message = transfer.Message(kind, number, text)
            encoded = bytes.fromhex(vector["gives"]["bytes"])
            self.assertEqual(message.encode(), encoded, vector["name"])
            messages = transfer.Messages()
            found = [message for at in range(len(encoded)) for message in messages.take(encoded[at : at + 1])]
            self.assertEqual(found, [message])

    def test_headers_of_deliveries_are_those_of_the_vectors(self):
        (vector,) = read("transfer", "header of a delivery")
        numbers = {key: int(value) for key, value in vector["given"].items()}
        self.assertEqual(transfer.delivery_header(**numbers).hex(), vector["gives"]["bytes"])

    def test_messages_that_close_the_session_do_so_with_their_code(self):
        bad = [vector for vector in read("transfer") if "close_app" in vector["gives"]]
        self.assertGreater(len(bad), 15)
        for vector in bad:
            message = bytes.fromhex(vector["given"]["message"])
            with self.assertRaises(transfer.Violation, msg=vector["name"]) as caught:
                transfer.Messages().take(varint(len(message)) + message)
            self.assertEqual(caught.exception.code, vector["gives"]["close_app"], vector["name"])

    def test_lengths_out_of_bounds_close_the_session_and_unknown_types_are_ignored(self):
        wrong = transfer.BAD_LENGTH
        for length, code in ((varint(0), wrong), (varint(65_537), wrong), (b"\xc0", wrong), (b"\x40\x02", 0x102)):
            with self.assertRaises(transfer.Violation) as caught:
                transfer.Messages().take(length)
            self.assertEqual(caught.exception.code, code)
        self.assertEqual(transfer.Messages().take(b"\x02\x40\x01"), [])


class Lists(unittest.TestCase):
    def test_values_of_chunks_lead_to_the_content_id(self):
        for vector in read("content"):
            content = bytes(at % 251 for at in range(251)) * (vector["given"]["size"] // 251 + 1)
            content_id = blake3(content[: vector["given"]["size"]]).hexdigest()
            self.assertEqual(content_id, vector["gives"]["content_id"])
            values = [bytes.fromhex(value) for value in vector["gives"]["values"]]
            if values:
                self.assertEqual(tree.combine(values, True).hex(), content_id)
                self.assertNotEqual(tree.combine(values, False).hex(), content_id)
                self.assertNotEqual(tree.combine(values[::-1], True).hex(), content_id)


class Tickets(unittest.TestCase):
    def test_tickets_are_written_and_read(self):
        for vector in read("ticket"):
            if vector["gives"].get("refused"):
                continue
            given = vector["given"]
            split = [address.rsplit(":", 1) for address in given["addresses"]]
            addresses = tuple((ipaddress.ip_address(host.strip("[]")), int(port)) for host, port in split)
            content, peer, token = (bytes.fromhex(given[key]) for key in ("content_id", "peer_id", "token"))
            made = ticket.Ticket(given["kind"], content, int(given["size"]), given["name"], peer, token, addresses)
            self.assertEqual(str(made), vector["gives"]["text"])
            self.assertEqual(ticket.read(vector["gives"]["text"]), made)

    def test_texts_that_are_no_tickets_are_refused(self):
        bad = [vector for vector in read("ticket") if vector["gives"].get("refused")]
        self.assertGreater(len(bad), 20)
        for vector in bad:
            with self.assertRaises(Malformed, msg=vector["name"]):
                ticket.read(vector["given"]["text"])
