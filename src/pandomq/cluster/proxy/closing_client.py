"""A client of a front closes its connection: it gets the answers that it requested, then the root closes what the
client has there, and last the names of its private queues become free. Later clients find the same state as with one
broker.

This takes as long as the root takes, up to a limit (see `Awaiting.closing_client`).
"""

from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pandomq import kernel
    from pandomq.cluster.proxy.front_client import FrontClient
    from pandomq.methods import Method


class ClosingStage(IntEnum):
    """The event that the close waits for."""

    ANSWERS = 0
    CHANNELS = 1
    NAMES = 2
    NOTHING = 3


class ClosingClient:
    __slots__ = ("_client", "_open_count", "stage")

    def __init__(self, client: "FrontClient") -> None:
        self._client = client
        self._open_count = 0
        """Channels that the root has not closed yet."""
        self.stage = ClosingStage.ANSWERS

    def go_on(self) -> bool:
        """Advances as far as possible. True when nothing is left."""
        client = self._client
        if client.failed and self.stage < ClosingStage.NAMES:
            # An earlier request of the client was at fault, and left nothing to close.
            self.stage = ClosingStage.NOTHING
        if self.stage is ClosingStage.ANSWERS and not self._awaits_answers():
            self.stage = ClosingStage.CHANNELS
            self._close_channels()
        if self.stage is ClosingStage.CHANNELS and not self._open_count:
            self.stage = ClosingStage.NAMES
            self._free_names()
        return self.stage is ClosingStage.NOTHING

    def _awaits_answers(self) -> bool:
        client = self._client
        waits = client.call is not None or client.held_bytes > 0
        return client.closing_count > 0 or (waits and not client.lacks_root)

    def _close_channels(self) -> None:
        for channel in self._client.front_channels:
            lane, channel.lane = channel.lane, None
            if lane is not None:
                self._open_count += 1
                lane.close(self._one_closed)

    def _one_closed(self, _method: "Method", _message: "kernel.Message | None") -> None:
        if self._open_count:
            self._open_count -= 1
            self.go_on()

    def _free_names(self) -> None:
        client = self._client
        client.abandon_call()
        client.broker.leave(client)
        trunk = client.broker.trunks.get(client.vhost)
        if trunk is None:
            self.give_up()
        else:
            trunk.when_quiet(self.give_up)

    def tunnel_lost(self) -> None:
        """All channels close with the tunnel."""
        self._open_count = 0
        self.go_on()

    def give_up(self) -> None:
        """Stops waiting."""
        if self.stage < ClosingStage.NAMES and not self._client.failed:
            self._client.broker.leave(self._client)
        self.stage = ClosingStage.NOTHING
