"""The connection ids of both ends (PROTO §5.11, §6.6)."""

import os

from .frames import frame
from .wire import Malformed

MOST = 4


class Ids:
    """`own` are those that the peer addresses this end by, `peer` is the one that this end uses."""

    def __init__(self, own_id, peer_id):
        self.own, self.given = {0: own_id}, 1
        self.of_peer, self.retired_below = {0: peer_id}, 0
        self.seen = {0: peer_id}

    @property
    def peer(self):
        return self.of_peer[min(self.of_peer)]

    def on_frame(self, item):
        """Returns the frames to answer with."""
        if item.name == "NEW_CONNECTION_ID":
            return self._on_new(item["sequence"], item["retire_prior_to"], item["id"])
        return self._on_retire(item["sequence"])

    def _on_new(self, sequence, below, new):
        if below > sequence:
            raise Malformed("an id that retires itself")
        if self.seen.setdefault(sequence, new) != new or list(self.seen.values()).count(new) > 1:
            raise Malformed("an id with another number, or a number with another id")
        self.retired_below = max(self.retired_below, below)
        self.of_peer[sequence] = new
        retired = [number for number in self.of_peer if number < self.retired_below]
        for number in retired:
            del self.of_peer[number]
        if len(self.of_peer) > MOST or not self.of_peer:
            raise Malformed("a fifth id, or none left")
        return [frame("RETIRE_CONNECTION_ID", sequence=number) for number in retired]

    def _on_retire(self, sequence):
        if sequence >= self.given:
            raise Malformed("an id that was never given")
        if self.own.pop(sequence, None) is None:
            return []
        # Each is replaced, so that the peer always has one.
        new = self.own[self.given] = os.urandom(8)
        self.given += 1
        return [frame("NEW_CONNECTION_ID", sequence=self.given - 1, retire_prior_to=0, id=new)]
