"""Fetches the file that a ticket of `wraith-cli send` names, and writes it to stdout."""

import argparse
import sys

from wraith import ticket, transfer
from wraith.client import Client, TimedOut
from wraith.dial import Refused
from wraith.identity import Identity
from wraith.wire import Malformed


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ticket")
    try:
        wanted = ticket.read(parser.parse_args().ticket)
        content = transfer.Fetch(dial(wanted), wanted).run()
    except (Malformed, transfer.Failed, TimedOut) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    sys.stdout.buffer.write(content)
    return 0


# Time for three INIT, and not for a fourth (PROTO §11.7).
SECONDS = 1.7


def dial(wanted):
    """A session with the first address that answers."""
    for address, port in wanted.addresses:
        try:
            return Client(Identity(), wanted.peer, (str(address), port), [transfer.PROTOCOL], seconds=SECONDS)
        except (Refused, TimedOut, OSError) as error:
            print(f"{address}: {error}", file=sys.stderr)
    raise transfer.Failed("no address of the ticket answers")


if __name__ == "__main__":
    sys.exit(main())
