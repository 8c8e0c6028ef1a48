"""Files from `wraith-cli send` over UDP."""

import json
import pathlib
import random
import subprocess
import tempfile
import unittest

from wraith import ticket, transfer
from wraith.client import Client
from wraith.identity import Identity

from .listener import tool


class Files(unittest.TestCase):
    def send(self, content):
        """A provider of this content, and its ticket."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = pathlib.Path(folder.name) / "content"
        path.write_bytes(content)
        command = [tool(), "send", "--json", "--quiet", "--driver", "mio", "--bind", "127.0.0.1:0", str(path)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait, 10)
        self.addCleanup(process.kill)
        return process, ticket.read(json.loads(process.stdout.readline())["ticket"])

    def test_files_of_any_size_arrive_and_are_confirmed(self):
        for size in (0, 1, 1 << 20, 2_500_000):
            content = random.Random(size).randbytes(size)
            process, wanted = self.send(content)
            self.assertEqual((wanted.size, wanted.name), (size, "content"))
            # Whoever waits for the end sees that there is progress.
            print(size, "bytes", flush=True)
            fetched = transfer.Fetch(dial(wanted), wanted).run()
            self.assertTrue(fetched == content)
            # It ends behind the one delivery that it was asked for.
            lines = [json.loads(line) for line in process.stdout]
            self.assertEqual([line["bytes"] for line in lines if line["event"] == "confirmed"], [size])
            self.assertEqual(process.wait(10), 0)

    def test_a_wrong_token_is_refused_like_an_unknown_content(self):
        process, wanted = self.send(b"secret")
        wrong = ticket.Ticket(**vars(wanted) | {"token": bytes(16)})
        with self.assertRaisesRegex(transfer.Failed, "code 1$"):
            transfer.Fetch(dial(wrong), wrong).run()
        self.assertIsNone(process.poll())


def dial(wanted):
    ((address, port),) = wanted.addresses
    return Client(Identity(), wanted.peer, (str(address), port), [transfer.PROTOCOL])
