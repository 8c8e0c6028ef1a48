#!/usr/bin/env -S python3 -B
"""Compares the ways to read and write files, std and uring, by sending a file over loopback in alternating pairs.

    cargo build --release --package wraith-cli
    benches/files.py [--pairs N] [--size SIZE] [--dir DIR] [--program PATH] [--only PATTERN]

Printed are medians and the median of the ratios of a pair, uring to std: Gbit/s without the final fsync (above 1 uring
is faster); seconds with it, seconds of hashing before, and processor seconds of both processes for all of that (below 1
uring takes less).
DIR is a folder on the disk to measure; what is in memory is measured in /dev/shm. A cold file has left the page cache
before it is hashed, and before it is sent.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import tempfile
import time

WAYS = ("std", "uring")


class Scene:
    """A folder with a file to send."""

    def __init__(self, arguments, folder):
        self.program, self.folder = arguments.program, folder
        self.source = os.path.join(folder, "file")
        size = arguments.size.replace("iB", "")
        with open(self.source, "wb") as file:
            # Not sparse, and nothing that a disk could shorten.
            subprocess.run(["head", "--bytes", size, "/dev/urandom"], check=True, stdout=file)
            os.fsync(file.fileno())

    def run(self, way, cold):
        """Gbit/s, seconds, seconds of hashing and processor seconds of one transfer."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        into = os.path.join(self.folder, "into")
        os.makedirs(into, exist_ok=True)
        tool = [self.program, "--json", "--quiet"]
        send = [*tool, "send", "--files", way, "--bind", "127.0.0.1:0", self.source]
        if cold:
            self.cool()
        began = time.monotonic()
        with subprocess.Popen(send, stdout=subprocess.PIPE, text=True) as sender:
            ticket = json.loads(sender.stdout.readline())["ticket"]
            hashing = time.monotonic() - began
            if cold:
                self.cool()
            receive = [*tool, "receive", ticket, "--files", way, "--output", into]
            lines = subprocess.run(receive, check=True, stdout=subprocess.PIPE, text=True).stdout
            done = json.loads(lines.splitlines()[-1])
            assert done["files"] == way and done["verified"], done
            sender.stdout.read()
        os.remove(done["path"])
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return done["gbps"], done["seconds"], hashing, cpu

    def cool(self):
        file = os.open(self.source, os.O_RDONLY)
        try:
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(file)


def compare(name, scene, cold, pairs):
    taken = {way: [] for way in WAYS}
    scene.run(WAYS[0], cold)  # warms up
    for pair in range(pairs):
        for way in WAYS if pair % 2 == 0 else reversed(WAYS):
            taken[way].append(scene.run(way, cold))
    row = f"{name:14}"
    for column in zip(*(zip(*taken[way]) for way in WAYS)):
        std, uring = map(statistics.median, column)
        ratio = statistics.median(b / a for a, b in zip(*column))
        row += f" |{std:7.2f} {uring:7.2f} {ratio:7.2f}"
    print(row, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--size", default="1GiB")
    parser.add_argument("--dir", default="/var/tmp")
    parser.add_argument("--program", default="target/release/wraith-cli")
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    cases = [("memory", "/dev/shm", False), ("disk", arguments.dir, False), ("disk, cold", arguments.dir, True)]
    print(f"medians of {arguments.pairs} pairs: Gbit/s, seconds with fsync, of hashing, of processor; each std, uring, ratio")
    for name, parent, cold in cases:
        if arguments.only in name:
            with tempfile.TemporaryDirectory(dir=parent) as folder:
                compare(name, Scene(arguments, folder), cold, arguments.pairs)


if __name__ == "__main__":
    main()
