"""Seals stdin to a PeerId, or opens it: `seal.py seal --identity FILE --to PEER`, `seal.py open --identity FILE`."""

import argparse
import io
import pathlib
import sys

from wraith import sealed
from wraith.identity import Identity, from_text, to_text
from wraith.wire import Malformed


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=["seal", "open"])
    parser.add_argument("--identity", type=identity, required=True, help="an identity file of wraith-cli")
    parser.add_argument("--to", type=from_text, help="PeerId of the recipient")
    parser.add_argument("--sign", action="store_true", help="bind the sender towards everybody")
    parser.add_argument("--datagram", action="store_true", help="one datagram instead of a message")
    args = parser.parse_args()
    if (args.command == "seal") != (args.to is not None):
        parser.error("--to belongs to seal, which needs it")
    # Line by line or whole, reads of a file have all that was asked for but at its end.
    source, out = io.BufferedReader(sys.stdin.buffer.raw), sys.stdout.buffer
    try:
        for piece in seal(args, source) if args.command == "seal" else opened(args, source):
            out.write(piece)
    except Malformed as error:
        print(f"error: cannot open stdin: {error}", file=sys.stderr)
        return 1
    return 0


def seal(args, source):
    if args.datagram:
        return [sealed.seal_datagram(args.identity, args.to, source.read(), args.sign)]
    return sealed.seal_message(args.identity, args.to, source, args.sign)


def opened(args, source):
    """The body; who sealed it goes to stderr."""
    if args.datagram:
        fields, body = sealed.open_datagram(args.identity, source.read())
        pieces = [body]
    else:
        opener = sealed.Opener(args.identity, source)
        fields, pieces = opener.fields, opener.segments()
    yield from pieces
    print(f"{to_text(fields.sender)} {fields.id.hex()} {fields.time} {fields.flags}", file=sys.stderr)


def identity(path):
    """The one line of an identity file: its kind, the seed in hexadecimal, the PeerId."""
    kind, seed, peer = pathlib.Path(path).read_text().split()
    who = Identity(bytes.fromhex(seed))
    if kind != "wraith-identity-1" or to_text(who.peer_id) != peer:
        raise ValueError(f"{path} is no identity file")
    return who


if __name__ == "__main__":
    sys.exit(main())
