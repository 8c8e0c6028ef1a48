#!/usr/bin/env -S python3 -B
"""Compares the drivers mio and uring by `bench` and by sending a file, in alternating pairs on loopback and on a veth pair.

    cargo build --release --package wraith-cli
    sudo benches/drivers.py [--pairs N] [--seconds N] [--size SIZE] [--program PATH] [--only PATTERN]

Printed are medians and the median of the ratios of a pair, uring to mio: above 1 uring is faster. Without root only
loopback is measured.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

DRIVERS = ("mio", "uring")
LEFT, RIGHT = "wraith-left", "wraith-right"
PORT = 4433


def output(*command, **options):
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, **options)
    return json.loads(done.stdout.splitlines()[-1])


class Tool:
    """The program, with an identity of its own for each host."""

    def __init__(self, arguments, folder):
        self.program, self.seconds, self.size = arguments.program, arguments.seconds, arguments.size
        self.folder = folder

    def command(self, driver, *words, host=None):
        inside = ["ip", "netns", "exec", host] if host else []
        identity = os.path.join(self.folder, f"identity-{host}")
        if not os.path.exists(identity):
            subprocess.run([self.program, "keygen", "--output", identity], check=True, stdout=subprocess.DEVNULL)
        return [*inside, self.program, "--json", "--quiet", "--identity", identity, "--driver", driver, *words]

    def served(self, server, client):
        """Runs a server, and a client with the first line that the server prints."""
        with subprocess.Popen(server, stdout=subprocess.PIPE, text=True) as process:
            try:
                return client(json.loads(process.stdout.readline()))
            finally:
                process.terminate()

    def bench_loopback(self, driver):
        return output(*self.command(driver, "bench", "--duration", f"{self.seconds}s"))["gbps"]

    def bench_veth(self, driver):
        def client(listening):
            target = f"{listening['peer']}@10.78.0.2:{PORT}"
            words = ["bench", "--duration", f"{self.seconds}s", "--connect", target]
            return output(*self.command(driver, *words, host=LEFT))["gbps"]

        return self.served(self.command(driver, "listen", "--bind", f"10.78.0.2:{PORT}", host=RIGHT), client)

    def file_loopback(self, driver):
        return output(*self.command(driver, "demo", "--size", self.size, "--dir", self.folder))["gbps"]

    def file_veth(self, driver):
        path = os.path.join(self.folder, "file")
        if not os.path.exists(path):
            subprocess.run(["truncate", "--size", self.size.replace("iB", ""), path], check=True)

        def client(ticket):
            words = ["receive", ticket["ticket"], "--output", self.folder, "--overwrite"]
            return output(*self.command(driver, *words, host=LEFT))["gbps"]

        into = os.path.join(self.folder, "in")
        os.makedirs(into, exist_ok=True)
        return self.served(self.command(driver, "send", path, "--bind", f"10.78.0.2:{PORT}", host=RIGHT), client)


def hosts():
    """Two hosts on a veth pair; False if there can be none."""
    if os.geteuid() != 0:
        print("veth is not measured: it takes root", file=sys.stderr)
        return False
    for host, end, address in ((LEFT, "left", "10.78.0.1/24"), (RIGHT, "right", "10.78.0.2/24")):
        subprocess.run(["ip", "netns", "add", host], check=True)
        if host == RIGHT:
            names = ["left", "netns", LEFT, "type", "veth", "peer", "name", "right", "netns", RIGHT]
            subprocess.run(["ip", "link", "add", *names], check=True)
    for host, end, address in ((LEFT, "left", "10.78.0.1/24"), (RIGHT, "right", "10.78.0.2/24")):
        inside = ["ip", "-n", host]
        subprocess.run([*inside, "addr", "add", address, "dev", end], check=True)
        subprocess.run([*inside, "link", "set", end, "up"], check=True)
    return True


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--size", default="512MiB")
    parser.add_argument("--program", default="target/release/wraith-cli")
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        tool = Tool(arguments, folder)
        try:
            runs = {"bench, loopback": tool.bench_loopback, "file, loopback": tool.file_loopback}
            if "loopback" not in arguments.only and hosts():
                runs |= {"bench, veth": tool.bench_veth, "file, veth": tool.file_veth}
            print(f"{'what':16} {'mio':>8} {'uring':>8} {'ratio':>6}   Gbit/s, medians of {arguments.pairs} pairs")
            for name, run in runs.items():
                if arguments.only in name:
                    compare(name, run, arguments.pairs)
        finally:
            for host in (LEFT, RIGHT):
                subprocess.run(["ip", "netns", "del", host], check=False, stderr=subprocess.DEVNULL)


def compare(name, run, pairs):
    rates = {driver: [] for driver in DRIVERS}
    run(DRIVERS[0])  # warms up
    for pair in range(pairs):
        for driver in DRIVERS if pair % 2 == 0 else reversed(DRIVERS):
            rates[driver].append(run(driver))
    mio, uring = (statistics.median(rates[driver]) for driver in DRIVERS)
    ratio = statistics.median(b / a for a, b in zip(rates["mio"], rates["uring"]))
    print(f"{name:16} {mio:8.2f} {uring:8.2f} {ratio:6.2f}", flush=True)


if __name__ == "__main__":
    main()
