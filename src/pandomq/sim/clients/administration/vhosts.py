"""Clients of several vhosts in which equal names are different objects, and the client that makes and deletes the
vhosts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from pandomq.broker.log.commands import AdministrativeCommand, DeleteVhost, PutPermissions, PutVhost
from pandomq.errors import ConnectionFault, Fault
from pandomq.methods import (
    BasicConsume,
    BasicDeliver,
    BasicQos,
    ConfirmSelect,
    ConnectionClose,
    ExchangeDeclare,
    ExchangeDeclareOk,
    Method,
    QueueBind,
    QueueBindOk,
    QueueDeclare,
)
from pandomq.sim.clients.client import SimulatedClient
from pandomq.sim.clients.consumer import ConsumingClient
from pandomq.sim.clients.named_publisher import NamedPublisher
from pandomq.sim.clients.publisher import MessageOptions, Publisher, Publishing
from pandomq.sim.ledger import BrokenPromise
from pandomq.sim.queues import PROOF

if TYPE_CHECKING:
    from pandomq.broker.administration.administration import OnDone
    from pandomq.sim.ledger import ClientTransaction, SentMessage
    from pandomq.sim.network.cable import Cable
    from pandomq.sim.queues import QueueKind
    from pandomq.sim.scene import Scene

APART: Final = "vhosts are separate"
ENDED: Final = "a deleted vhost is gone"
TWIN: Final = "twin"
"""The queue that each vhost has."""
FORK: Final = ExchangeDeclare("fork", "direct", durable=True)
KEY: Final = "key"
PRODUCER: Final = "one of several"
"""The name under which the publishers of each vhost number their messages."""
NOT_ALLOWED: Final = 530
WAIT_MS: Final = 30


class VhostState:
    """One vhost, as its maker knows it."""

    def __init__(self, name: str, *, bound: bool = True, mortal: bool = False) -> None:
        self.name = name
        self.bound = bound
        """Whether the exchange of the common name is bound to the queue of the common name."""
        self.mortal = mortal
        """Whether the vhost is deleted now and then."""
        self.generation = 0
        self.exists = False

    @property
    def queue(self) -> str:
        """The ledger's name of the queue of the common name."""
        return f"{self.name}/{TWIN}"


class VhostMaker(SimulatedClient):
    """Makes the vhosts, one command after the other; then deletes some and makes them again."""

    rest_ms = 40

    def __init__(self, scene: Scene, name: str, vhosts: list[VhostState], wanted: int) -> None:
        super().__init__(scene, name)
        # A request without an answer that goes through another broker may be under way for longer than this client
        # waits.
        self.wants_root = True
        self._vhosts = vhosts
        self._wanted = wanted
        self._commands: list[tuple[VhostState, AdministrativeCommand]] = []
        for vhost in vhosts:
            self._plan(vhost)
        self._epoch = 0
        self.done = 0

    def _plan(self, vhost: VhostState) -> None:
        permissions = PutPermissions(vhost.name, self.user, ".*", ".*", ".*")
        self._commands += [(vhost, PutVhost(vhost.name)), (vhost, permissions)]

    @property
    def content(self) -> bool:
        return self.done >= self._wanted and not self._commands

    def end_wish(self) -> None:
        self._wanted = self.done + 1
        if self.ready and not self._commands:
            self._go_on()

    def opened(self) -> None:
        if self._epoch != self.scene.ledger.epoch:
            # The vhosts may be lost.
            self._epoch = self.scene.ledger.epoch
            self._commands.clear()
            for vhost in self._vhosts:
                self._plan(vhost)
        self._go_on()

    def _go_on(self) -> None:
        if not self._commands:
            self.act_later(self.random.randint(50, 400), self._delete)
        elif self.reaches_broker:
            vhost, command = self._commands[0]
            if isinstance(command, DeleteVhost):
                vhost.exists = False
            assert self.cable is not None
            self.administer(command, self._on_done(command, self.cable))

    def _delete(self) -> None:
        if self.done < self._wanted and not self._commands:
            vhost = self.random.choice([one for one in self._vhosts if one.mortal])
            self._commands.append((vhost, DeleteVhost(vhost.name)))
            self._plan(vhost)
            self._go_on()

    def _on_done(self, command: AdministrativeCommand, cable: Cable) -> OnDone:
        def done(fault: Fault | None) -> None:
            mine = self._commands and self._commands[0][1] is command
            if self.cable is not cable or not mine or isinstance(fault, ConnectionFault):
                self.ask_again(fault, cable)
                return
            if fault is not None and not isinstance(command, DeleteVhost):
                raise BrokenPromise("legal requests are served", f"{command}: {fault}")
            vhost, _ = self._commands.pop(0)
            if isinstance(command, DeleteVhost):
                self.done += 1
            elif isinstance(command, PutPermissions):
                vhost.generation += 1
                vhost.exists = True
            # This is called within a step of the broker, so the next request is made after it.
            self.scene.agenda.after(0, lambda: self._go_on() if self.cable is cable and self.ready else None)

        return done


class _InVhost(SimulatedClient):
    """Connects when its vhost exists; it may lose the vhost with its connection."""

    state: VhostState
    generation = 0
    """The generation of the vhost to which it connected."""
    is_certain = True
    """Whether the maker knew that generation when the client connected: while the maker waits for an answer, the next
    generation may exist already."""

    def enter(self, state: VhostState) -> None:
        self.state = state
        self.vhost = state.name

    def connect(self) -> None:
        if self.state.exists or self.leaving:
            super().connect()
        else:
            self.scene.agenda.after(self.random.randint(1, WAIT_MS), self.connect)

    def opened(self) -> None:
        self.generation, self.is_certain = self.state.generation, self.state.exists
        super().opened()

    @property
    def outlives(self) -> bool:
        """Whether it is connected to a vhost that has been deleted since."""
        return self.ready and self.generation < self.state.generation

    def _connection_method(self, method: Method) -> None:
        if isinstance(method, ConnectionClose) and method.reply_code == NOT_ALLOWED:
            if not self.state.mortal and not self.scene.ledger.epoch:
                raise BrokenPromise(ENDED, f"{self.name} received the reply that {self.vhost} is gone: {method}")
            self.cut()
            return
        super()._connection_method(method)

    def declare(self, kind: QueueKind) -> None:
        if kind.name == self.state.queue:
            self.send(QueueDeclare(TWIN, durable=True))
        else:
            super().declare(kind)


class VhostPublisher(_InVhost, Publisher):
    """Publishes to the queue, and through the exchange, which is bound to the queue in some vhosts only."""

    def __init__(self, scene: Scene, name: str, state: VhostState, kind: QueueKind, wanted: int) -> None:
        super().__init__(scene, name, [kind], "", wanted)
        self.enter(state)
        self._burst_max = min(self._burst_max, 4)
        self._think_ms = self.random.choice((5, 20, 60))
        self.generations: dict[SentMessage, int] = {}

    def opened(self) -> None:
        super().opened()
        self.send(FORK)
        if self.state.bound:
            self.send(QueueBind(TWIN, FORK.exchange, KEY))

    def method(self, method: Method, body: bytes) -> None:
        if not isinstance(method, ExchangeDeclareOk | QueueBindOk):
            super().method(method, body)

    def form(self) -> MessageOptions:
        through_fork = self.random.random() < 0.5
        self._exchange = FORK.exchange if through_fork else ""
        lost = through_fork and not self.state.bound
        key = KEY if through_fork else TWIN
        return MessageOptions(filling=bytes(20), routing_key=key, persistent=True, unroutable=lost)

    def formed(self, message: SentMessage, form: MessageOptions | None) -> None:
        if self.is_certain:
            self.generations[message] = self.generation


class VhostNamedPublisher(_InVhost, NamedPublisher):
    """Numbers its messages under a name that publishers of other vhosts use, too."""

    def __init__(self, scene: Scene, name: str, state: VhostState, kind: QueueKind, wanted: int) -> None:
        super().__init__(scene, name, kind, wanted)
        self.enter(state)
        self._publishing = _InQueue(self, producer=PRODUCER)


class _InQueue(Publishing):
    """All messages go to the queue of the common name."""

    def message(
        self,
        queues: Sequence[QueueKind],
        exchange: str = "",
        transaction: ClientTransaction | None = None,
        form: MessageOptions | None = None,
        label: tuple[str, int] | None = None,
    ) -> tuple[SentMessage, bytes]:
        return super().message(queues, exchange, transaction, MessageOptions(filling=bytes(20), routing_key=TWIN))


class VhostConsumer(_InVhost, ConsumingClient):
    def __init__(self, scene: Scene, name: str, state: VhostState, kind: QueueKind) -> None:
        super().__init__(scene, name, kind)
        self.enter(state)
        self._gets = False
        self._think_ms = min(self._think_ms, 10)
        self.publisher: VhostPublisher | None = None

    def opened(self) -> None:
        self.generation = self.state.generation
        self._forget_deliveries()
        self.send(ConfirmSelect())
        self.declare(PROOF)
        self.declare(self._kind)
        self.send(BasicQos(prefetch_count=self._prefetch), BasicConsume(TWIN, self._kind.name))

    def method(self, method: Method, body: bytes) -> None:
        if isinstance(method, BasicDeliver):
            message = self.scene.ledger.message_of(body)
            if self._kind.name not in message.queues:
                raise BrokenPromise(APART, f"{message} was sent to {message.queues}, and arrived in {self._kind.name}")
            known = None if self.publisher is None else self.publisher.generations.get(message)
            if known is not None and known < self.generation:
                raise BrokenPromise(
                    ENDED, f"{message} is of a vhost that was deleted, and arrived in the next one of the same name"
                )
        super().method(method, body)
