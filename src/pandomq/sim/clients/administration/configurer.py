"""Declares, binds, deletes and administers, one change at a time, beside a model of the result.

If the connection breaks before the answer, the change is in doubt: a restart shows whether it was made. Then the client
requests it again, which does no harm.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pandomq.broker.administration.administration import OnDone
from pandomq.broker.log.commands import (
    AdministrativeCommand,
    DeletePolicy,
    DeleteUser,
    DeleteVhost,
    PutPolicy,
    PutUser,
    PutVhost,
)
from pandomq.errors import ConnectionFault, Fault
from pandomq.methods import (
    ExchangeBind,
    ExchangeDeclare,
    ExchangeDelete,
    ExchangeUnbind,
    Method,
    QueueBind,
    QueueDeclare,
    QueueDelete,
    QueueUnbind,
)
from pandomq.sim.clients.client import SimulatedClient
from pandomq.sim.ledger import BrokenPromise
from pandomq.sim.network.cable import Cable
from pandomq.sim.state.configuration import PREFIX, Change, DefinitionsModel, configuration_of

if TYPE_CHECKING:
    from pandomq.sim.machine import Machine
    from pandomq.sim.scene import Scene

NAMES: Final = 3
PROMISE: Final = "configuration equals the model"
CHURN_CHANGES: Final = 400
CHURN_THINK_MS: Final = 5
UNBIND_CHANCE: Final = 0.2


class Configurer(SimulatedClient):
    rest_ms = 40
    """Requests of its last connection have arrived by then, or never will."""

    def __init__(self, scene: Scene, name: str, wanted: int) -> None:
        super().__init__(scene, name)
        # A request without an answer that goes through another broker may be under way for longer than this client
        # waits.
        self.wants_root = True
        self._think_ms = self.random.choice((0, 10, 60))
        self._wanted = wanted
        self._model = DefinitionsModel()
        self._change: Change | None = None
        self._unknown = False
        self._unbind_chance = 0.0
        """The chance that it reverts a binding instead of making any other change."""
        self.done = 0

    @property
    def content(self) -> bool:
        return self.done >= self._wanted and self._change is None

    def end_wish(self) -> None:
        self._wanted = self.done + 2
        self._later()

    def churn(self) -> None:
        """Makes changes almost without a pause, and reverts many of them."""
        self._wanted = CHURN_CHANGES
        self._think_ms = min(self._think_ms, CHURN_THINK_MS)
        self._unbind_chance = UNBIND_CHANCE

    # Comparison with the broker.

    def restarted(self, machine: Machine) -> None:
        """The broker serves again."""
        assert machine.node is not None
        found = configuration_of(machine.node.broker)
        # In a cluster a takeover is no restart: objects that are not durable stay, unless a broker that was root for
        # only a moment, and never served, has found that all others had been away.
        peers = machine.node.peers
        stays = peers.knowledge.stayed(peers.replica.told_ahead_ms)
        for candidate in self._candidates():
            if found == candidate.restarted() or (stays and found == candidate) or self._unknown:
                self._model = found
                self._unknown = False
                return
        expected = self._model if stays else self._model.restarted()
        raise BrokenPromise(PROMISE, expected.difference(found) + f" (in doubt: {self._change})")

    def begin_epoch(self) -> None:
        """The configuration is now that of one broker, whatever clients were told before."""
        self._unknown = True

    def check(self, machine: Machine) -> None:
        assert machine.node is not None
        found = configuration_of(machine.node.broker)
        if found not in self._candidates():
            raise BrokenPromise(PROMISE, self._model.difference(found) + f" (in doubt: {self._change})")

    def _candidates(self) -> list[DefinitionsModel]:
        return [self._model] if self._change is None else [self._model, self._model.after(self._change)]

    # Changes.

    def opened(self) -> None:
        if self._change is None:
            self._later()
        else:
            self._ask(self._change)

    def _later(self) -> None:
        self.act_later(self.random.randint(0, self._think_ms), self._begin)

    def _begin(self) -> None:
        if self._change is None and self.done < self._wanted:
            self._change = self._draw()
            self._ask(self._change)

    def _ask(self, change: Change) -> None:
        if isinstance(change, Method):
            if not self._possible(change):
                # A restart removed the object of the change.
                self._answered()
                return
            self.send(change)
            return
        assert self.cable is not None
        # If the client has not noticed the end of the connection yet, it requests the change again.
        if self.reaches_broker:
            self.administer(change, self._on_done(change, self.cable))

    def _on_done(self, change: AdministrativeCommand, cable: Cable) -> OnDone:
        def done(fault: Fault | None) -> None:
            if self.cable is not cable or self._change is not change or isinstance(fault, ConnectionFault):
                # If the broker is no longer the root, it is about to close the connection, and the client repeats the
                # request then.
                self.ask_again(fault, cable)
                return
            if fault is not None and not isinstance(change, DeletePolicy | DeleteUser | DeleteVhost):
                raise BrokenPromise("legal requests are served", f"{change}: {fault}")
            self._answered()

        return done

    def method(self, method: Method, body: bytes) -> None:
        if self._change is None:
            raise self.unexpected(method, " without a request")
        self._answered()

    def _answered(self) -> None:
        assert self._change is not None
        if not isinstance(self._change, Method) or self._possible(self._change):
            self._model = self._model.after(self._change)
        self._change = None
        self.done += 1
        self._later()

    def _possible(self, change: Method) -> bool:
        exchanges, queues = self._model.exchanges, self._model.queues
        match change:
            case QueueBind(queue, source) | QueueUnbind(queue, source):
                return queue in queues and source in exchanges
            case ExchangeBind(destination, source) | ExchangeUnbind(destination, source):
                return destination in exchanges and source in exchanges
            case QueueDeclare(name, _, durable):
                return queues.get(name, durable) == durable
            case ExchangeDeclare(name, kind, _, durable):
                return exchanges.get(name, (kind, durable)) == (kind, durable)
            case _:
                return True

    def _draw(self) -> Change:
        while True:
            change = self._draw_any()
            if not isinstance(change, Method) or self._possible(change):
                return change

    def _draw_any(self) -> Change:
        random = self.random
        if self._unbind_chance and self._model.bindings and random.random() < self._unbind_chance:
            source, kind, name, key = random.choice(sorted(self._model.bindings))
            return QueueUnbind(name, source, key) if kind == "queue" else ExchangeUnbind(name, source, key)
        exchange, other = (f"{PREFIX}exchange-{random.randrange(NAMES)}" for _ in range(2))
        queue = f"{PREFIX}queue-{random.randrange(NAMES)}"
        name = f"{PREFIX}{random.randrange(NAMES)}"
        key = random.choice(("a", "b.c"))
        durable = random.random() < 0.7
        choices: tuple[tuple[int, Change], ...] = (
            (4, ExchangeDeclare(exchange, random.choice(("direct", "topic", "fanout")), durable=durable)),
            (1, ExchangeDelete(exchange)),
            (4, QueueDeclare(queue, durable=durable)),
            (1, QueueDelete(queue)),
            (4, QueueBind(queue, exchange, key)),
            (3, QueueUnbind(queue, exchange, key)),
            (2, ExchangeBind(other, exchange, key)),
            (2, ExchangeUnbind(other, exchange, key)),
            (1, PutPolicy("/", name, f"^{PREFIX}", "queues", random.randrange(5), b'{"max-length":1000}')),
            (1, DeletePolicy("/", name)),
            (1, PutUser(name, "", "scrypt", ())),
            (1, DeleteUser(name)),
            (1, PutVhost(name)),
            (1, DeleteVhost(name)),
        )
        weights = [weight for weight, _ in choices]
        return random.choices([change for _, change in choices], weights)[0]
