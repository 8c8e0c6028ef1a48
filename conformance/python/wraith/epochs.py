"""The keys of a session and how they change (PROTO §5.13 to §5.17)."""

import os

from . import keys
from .frames import frame
from .identity import x25519, x25519_public
from .wire import Malformed

SHARE = 32
# When an exchange begins by itself: after so many packets with AES-256-GCM, or so many seconds (PROTO §5.14).
PACKETS, SECONDS = 1 << 22, 120.0


class Epochs:
    """Roots, packet keys and shares. `newest` is the last epoch whose root is made, `sending` the one to send in."""

    def __init__(self, root_0, suite, initiator, now):
        self.root, self.suite, self.initiator = root_0, suite, initiator
        self.own_direction = 0 if initiator else 1
        self.own_header = keys.header_key(root_0, self.own_direction, suite)
        self.peer_header = keys.header_key(root_0, 1 - self.own_direction, suite)
        self.newest = self.sending = 0
        self.send_keys = {0: self._keys(0, self.own_direction)}
        self.receive_keys = {0: self._keys(0, 1 - self.own_direction)}
        # The newest epoch of which a packet opened, and until when the keys of the one before stay.
        self.heard, self.drop_at = None, None
        # The secret of an exchange that is not over, the own shares, those that arrived, and the peer's.
        self.secret, self.shares, self.arrived, self.peer_shares = None, {}, set(), {}
        self.began_at, self.packets, self.acked = now, 0, False

    def of_phase(self, phase):
        """The epoch and key to open a packet with; None when there is no such key."""
        return next(((epoch, key) for epoch, key in self.receive_keys.items() if epoch % 4 == phase), None)

    def on_opened(self, epoch, now, pto):
        """A packet of this epoch opened."""
        if self.heard is None or epoch > self.heard:
            self.heard = epoch
            self.receive_keys = {held: key for held, key in self.receive_keys.items() if held >= epoch - 1}
            self.drop_at = now + 3 * pto if epoch - 1 in self.receive_keys else None
        if epoch > self.sending:
            self._send_in(epoch, now)

    def on_time(self, now):
        if self.drop_at is not None and now >= self.drop_at:
            self.receive_keys.pop(self.heard - 1, None)
            self.drop_at = None

    def on_sent(self):
        self.packets += 1

    def on_acked(self, epoch):
        """A packet that was sent in this epoch was acknowledged."""
        self.acked |= epoch == self.sending

    def may_begin(self):
        alone = list(self.receive_keys) == [self.sending]
        return self.acked and alone and self.secret is None and self.newest == self.sending

    def is_due(self, now):
        many = self.suite == keys.AES_256_GCM and self.packets >= PACKETS
        return (many or now >= self.began_at + SECONDS) and self.may_begin()

    def begin(self):
        """The own share for the next epoch, as a frame."""
        self.secret = os.urandom(SHARE)
        share = self.shares[self.newest + 1] = x25519_public(self.secret)
        fields = {"epoch": self.newest + 1, "group": keys.X25519_GROUP, "total": SHARE, "offset": 0}
        return frame("KEY_SHARE", **fields, piece=share)

    def on_share(self, item, now):
        """Takes the peer's share; returns the own one where it has to be answered."""
        epoch, share = item["epoch"], item["piece"]
        if item["group"] != keys.X25519_GROUP or item["total"] != SHARE or len(share) != SHARE:
            raise Malformed("a share of another group, or in pieces")
        if epoch == 0 or epoch > self.newest + 1:
            raise Malformed("a share for an epoch out of turn")
        if epoch <= self.newest:
            if epoch == self.newest and epoch - 1 in self.receive_keys and share != self.peer_shares[epoch]:
                raise Malformed("another share than before")
            return None
        if self.heard != self.newest:
            raise Malformed("a share before the present epoch began")
        answer = self.begin() if self.secret is None else None
        self._make_root(epoch, share)
        self._send_if_known(epoch, now)
        return answer

    def on_share_acked(self, epoch, now):
        self.arrived.add(epoch)
        self._send_if_known(epoch, now)

    def _send_if_known(self, epoch, now):
        """With the peer's share and the own one arrived, both ends have the keys (PROTO §5.16)."""
        if epoch in self.arrived and epoch == self.newest and epoch > self.sending:
            self._send_in(epoch, now)

    def _make_root(self, epoch, share):
        try:
            shared = x25519(self.secret, share)
        except ValueError as error:
            raise Malformed("an X25519 result of zero") from error
        own = self.shares[epoch]
        pair = (own, share) if self.initiator else (share, own)
        self.root = keys.next_root(self.root, shared, *pair, epoch)
        self.secret = None
        self.peer_shares[epoch] = share
        self.newest = epoch
        self.send_keys[epoch] = self._keys(epoch, self.own_direction)
        self.receive_keys[epoch] = self._keys(epoch, 1 - self.own_direction)

    def _send_in(self, epoch, now):
        self.sending = epoch
        self.send_keys = {epoch: self.send_keys[epoch]}
        self.began_at, self.packets, self.acked = now, 0, False

    def _keys(self, epoch, direction):
        return keys.PacketKeys.of(self.root, epoch, direction, self.suite)
