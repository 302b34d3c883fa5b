"""A client of a front says goodbye: it hears what it asked for, then the root closes what it has there, and last the
names of its private queues are free. Whoever comes after it finds everything as if there were one broker.

It takes as long as the root takes, but not for ever (see `Awaiting.goodbye`).
"""

from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pandomq import kernel
    from pandomq.cluster.proxy.front_client import FrontClient
    from pandomq.methods import Method


class Stage(IntEnum):
    """What is waited for."""

    ANSWERS = 0
    CHANNELS = 1
    NAMES = 2
    NOTHING = 3


class Goodbye:
    __slots__ = ("_client", "_open_count", "stage")

    def __init__(self, client: "FrontClient") -> None:
        self._client = client
        self._open_count = 0
        """Channels that the root has not closed yet."""
        self.stage = Stage.ANSWERS

    def go_on(self) -> bool:
        """As far as it goes. True when nothing is left."""
        client = self._client
        if client.failed and self.stage < Stage.NAMES:
            # Something that it said before was at fault: it has nothing left.
            self.stage = Stage.NOTHING
        if self.stage is Stage.ANSWERS and not self._awaits_answers():
            self.stage = Stage.CHANNELS
            self._close_channels()
        if self.stage is Stage.CHANNELS and not self._open_count:
            self.stage = Stage.NAMES
            self._free_names()
        return self.stage is Stage.NOTHING

    def _awaits_answers(self) -> bool:
        client = self._client
        return client.closing_count > 0 or (client.call is not None and not client.lacks_root)

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
        """With it all channels are closed."""
        self._open_count = 0
        self.go_on()

    def give_up(self) -> None:
        """Nothing else is waited for."""
        if self.stage < Stage.NAMES and not self._client.failed:
            self._client.broker.leave(self._client)
        self.stage = Stage.NOTHING
