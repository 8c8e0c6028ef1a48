"""`wraith-cli listen` as a process, and sessions with it."""

import json
import os
import pathlib
import queue
import subprocess
import threading

from wraith.client import BOTH_SUITES, Client
from wraith.identity import Identity, from_text

DEBUG = pathlib.Path(__file__).parents[3] / "target" / "debug" / "wraith-cli"
PING, BENCH = b"wraith-ping/1", b"wraith-bench/1"


def tool():
    """The program of WRAITH_CLI, or the one that cargo built."""
    found = pathlib.Path(os.environ.get("WRAITH_CLI", DEBUG))
    if not found.is_file():
        raise FileNotFoundError(f"{found} is missing: run `cargo build -p wraith-cli`, or name it in WRAITH_CLI")
    return str(found)


class Listener:
    """Runs until `stop`; its lines are read by a thread, so that none is waited for without a deadline."""

    def __init__(self, *options):
        command = [tool(), "listen", "--json", "--quiet", "--driver", "mio", "--bind", "127.0.0.1:0", *options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.lines = queue.Queue()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        first = self.next()
        host, port = first["address"].rsplit(":", 1)
        self.address, self.peer = (host, int(port)), from_text(first["peer"])

    def next(self, event="listening"):
        """The next line of this kind; others are passed by."""
        while True:
            line = self.lines.get(timeout=10)
            if line["event"] == event:
                return line

    def dial(self, protocol=PING, suites=BOTH_SUITES, make=Client, **options):
        return make(Identity(), self.peer, self.address, [protocol], suites, **options)

    def stop(self):
        self.process.terminate()
        self.process.wait(10)
        self.reader.join(10)
        self.process.stdout.close()

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(json.loads(line))
