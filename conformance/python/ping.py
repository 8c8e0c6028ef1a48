"""Sends probes to `wraith-cli listen`, and prints what comes back."""

import argparse
import sys
import time

from wraith.client import Client, TimedOut
from wraith.dial import Refused
from wraith.identity import BadPeerId, Identity, from_text
from wraith.wire import u32

PROTOCOL = b"wraith-ping/1"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", metavar="PEER@IP:PORT", type=target)
    parser.add_argument("-c", "--count", type=int, default=4, help="probes to send")
    parser.add_argument("-i", "--interval", type=float, default=1.0, help="seconds between two")
    args = parser.parse_args()
    try:
        return ping(*args.target, args.count, args.interval)
    except (Refused, TimedOut) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def ping(peer, address, count, interval):
    """One probe after the other; returns the exit code: 0 if any came back."""
    client = Client(Identity(), peer, address, [PROTOCOL])
    received = 0
    for number in range(count):
        if client.session.closing:
            break
        sent = time.monotonic()
        client.session.events.clear()
        client.session.send_datagram(u32(number) + bytes(52))
        try:
            client.next("datagram", interval)
        except TimedOut:
            continue
        received += 1
        print(f"seq {number + 1}, {1000 * (time.monotonic() - sent):.3f} ms", flush=True)
        client.rest(sent + interval)
    client.close()
    return 0 if received else 1


def target(text):
    peer, _, address = text.partition("@")
    host, _, port = address.rpartition(":")
    try:
        return from_text(peer), (host.strip("[]"), int(port))
    except (BadPeerId, ValueError) as error:
        raise argparse.ArgumentTypeError(f"{text} is not PEER@IP:PORT: {error}") from error


if __name__ == "__main__":
    sys.exit(main())
