"""Sorts what clients said: the broker's work is gathered for the next batch, the rest is answered at once or noted."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, assert_never

from pandomq.kernel import PublishRun, SettleRun
from pandomq.methods import ConnectionUpdateSecretOk, MethodInput
from pandomq.wire.handshake import language
from pandomq.wire.inputs import Faulted, Input, Login, Misgreeted, OpenVhost, PeerClosed, Secured, UpdateSecret

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pandomq.broker.broker import Broker
    from pandomq.broker.client import Client
    from pandomq.node.backlog import Batch
    from pandomq.node.endings import Endings
    from pandomq.node.link import Link
    from pandomq.node.links import Links
    from pandomq.node.peer_door import PeerDoor
    from pandomq.node.pressure import Pressure
    from pandomq.node.reception import Ahead, Reception

log = logging.getLogger("pandomq")


class Intake:
    __slots__ = ("_door", "_endings", "_links", "_pressure", "_reception", "_said")

    def __init__(
        self, reception: Reception, links: Links, endings: Endings, pressure: Pressure, door: PeerDoor | None
    ) -> None:
        self._reception = reception
        self._door = door
        self._links = links
        self._endings = endings
        self._pressure = pressure
        self._said: dict[Broker, Batch] = {}

    def take_batch(self, broker: Broker) -> Batch:
        """What the clients of this broker have said."""
        return self._said.pop(broker, [])

    def gather(self, client: Client, work: Sequence[PublishRun | SettleRun | MethodInput]) -> None:
        self._said.setdefault(client.broker, []).append((client, work))

    def gather_ahead(self, let_in: Sequence[Ahead], now_ms: int) -> None:
        for link, inputs in let_in:
            self.gather_all(link, inputs, now_ms)

    def gather_all(self, link: Link, inputs: Sequence[Input], now_ms: int) -> None:
        while inputs:
            if link.hello is not None:
                assert self._door is not None
                inputs = self._door.hear(link, inputs, now_ms)
            else:
                inputs = self._gather(link, inputs, now_ms)

    def _gather(self, link: Link, inputs: Sequence[Input], now_ms: int) -> list[Input]:
        """Returns what a client that is let in had sent ahead."""
        work: list[PublishRun | SettleRun | MethodInput] = []
        ahead: list[Input] = []
        for item in inputs:
            match item:
                case PublishRun():
                    work.append(item)
                    self._pressure.published(link)
                case SettleRun() | MethodInput():
                    work.append(item)
                case Misgreeted(greeting):
                    log.warning("connection %s refused: it speaks %s", link.peer_name, language(greeting))
                case Login():
                    self.gather_ahead(self._reception.log_in(link, item, now_ms), now_ms)
                case Secured(response):
                    assert self._door is not None, "only other brokers are challenged"
                    ahead = self._door.check(link, response, now_ms)
                case OpenVhost():
                    ahead = self._reception.open(link, item, now_ms)
                case UpdateSecret():
                    link.connection.send(0, ConnectionUpdateSecretOk())
                    self._links.talk(link)
                case PeerClosed():
                    self._endings.add(link, None)
                case Faulted(fault):
                    self._endings.add(link, fault)
                case _:
                    assert_never(item)
        if work and link.client is not None:
            self.gather(link.client, work)
        return ahead
