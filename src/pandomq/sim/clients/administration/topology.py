"""Clients that declare and bind on one broker, and clients that rely on it on another (R16).

The `TopologyMaker` declares exchanges and binds exchanges to each other on any broker. Each name is new: a request
without an answer may still be executed later, and nothing that depends on it is tried. The `TopologyProber` stays on
its broker. There a front decides from its own state whether an exchange exists, and which private queues of its own
clients receive a message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pandomq.methods import (
    BasicGet,
    BasicGetEmpty,
    BasicGetOk,
    ChannelClose,
    ConfirmSelect,
    ConfirmSelectOk,
    ExchangeBind,
    ExchangeDeclare,
    ExchangeDeclareOk,
    ExchangeDelete,
    ExchangeUnbind,
    Method,
    QueueBind,
    QueueBindOk,
    QueueDeclare,
    QueueDeclareOk,
)
from pandomq.sim.clients.administration.administrator import LAST_CHANGES
from pandomq.sim.clients.administration.prober import Course, Prober
from pandomq.sim.clients.client import SimulatedClient
from pandomq.sim.facts import Assumption, Fact, Facts
from pandomq.sim.ledger import BrokenPromise

if TYPE_CHECKING:
    from pandomq.sim.scene import Scene

PROMISE: Final = "declared objects are in force everywhere"
SOURCE: Final = ExchangeDeclare("v-source", "topic", durable=True)
TARGET: Final = ExchangeDeclare("v-target", "topic", durable=True)
EXCHANGE: Final = "v-exchange-"
BINDING: Final = "v-binding-"
NOT_FOUND: Final = 404
CHANGES_PER_CONNECTION: Final = 5

Change = ExchangeDeclare | ExchangeDelete | ExchangeBind | ExchangeUnbind


class TopologyMaker(SimulatedClient):
    def __init__(self, scene: Scene, name: str, facts: Facts[bool], wanted: int) -> None:
        """The value of a fact is whether the exchange, or the binding, is there."""
        super().__init__(scene, name)
        self._facts = facts
        self._wanted = wanted
        self._think_ms = self.random.choice((2, 10, 40))
        self._asked: tuple[Fact[bool], bool] | None = None
        self._prepared = 0
        self._done_here = 0
        self.done = 0

    @property
    def content(self) -> bool:
        return self.done >= self._wanted

    def end_wish(self) -> None:
        self._wanted = self.done + LAST_CHANGES
        self._later()

    @property
    def is_prepared(self) -> bool:
        return self.ready and self._prepared >= 2

    def make(self, count: int) -> None:
        """Makes so many more changes, on the connection that the client has."""
        self._wanted, self._done_here = self.done + count, 0
        self._later()

    def opened(self) -> None:
        self._prepared = self._done_here = 0
        self.send(SOURCE, TARGET)

    def disconnected(self) -> None:
        self._asked = None

    def method(self, method: Method, body: bytes) -> None:
        if self._prepared < 2:
            if not isinstance(method, ExchangeDeclareOk):
                raise self.unexpected(method)
            self._prepared += 1
        elif self._asked is None:
            raise self.unexpected(method, " without a request")
        else:
            asked, self._asked = self._asked, None
            self.done += 1
            self._done_here += 1
            self._facts.settle(*asked)
            if self._done_here >= CHANGES_PER_CONNECTION:
                # The next change is made on any other broker.
                self.cut()
                return
        self._later()

    def _later(self) -> None:
        self.act_later(self.random.randint(0, self._think_ms), self._change)

    def _change(self) -> None:
        if self._prepared < 2 or self._asked is not None or self.done >= self._wanted:
            return
        present = [fact for fact in self._facts if fact.value]
        if present and self.random.random() < 0.5:
            fact, value = self.random.choice(present), False
        else:
            kind = self.random.choice((EXCHANGE, BINDING))
            fact, value = self._facts.new(f"{kind}{len(self._facts)}"), True
        fact.doubt()
        self._asked = fact, value
        self.send(_change(fact.name, there=value))


def _change(name: str, *, there: bool) -> Change:
    if name.startswith(EXCHANGE):
        return ExchangeDeclare(name, "direct", durable=True) if there else ExchangeDelete(name)
    kind = ExchangeBind if there else ExchangeUnbind
    return kind(TARGET.exchange, SOURCE.exchange, f"{name}.*")


class TopologyProber(Prober):
    def __init__(self, scene: Scene, place: str, facts: Facts[bool]) -> None:
        super().__init__(scene, f"prober-{place}", facts)
        self.place = place
        self._queue = ""
        self._count = 0

    def disconnected(self) -> None:
        super().disconnected()
        self._queue = ""

    def prepare(self) -> Course:
        self.send(ConfirmSelect())
        yield from self.await_answer(ConfirmSelectOk)
        for exchange in (SOURCE, TARGET):
            self.send(exchange)
            yield from self.await_answer(ExchangeDeclareOk)
        if not self._queue:
            self.send(QueueDeclare("", exclusive=True))
            declared, _ = yield from self.await_answer(QueueDeclareOk)
            assert isinstance(declared, QueueDeclareOk)
            self._queue = declared.queue
            self.send(QueueBind(self._queue, TARGET.exchange, f"*.{self.name}"))
            yield from self.await_answer(QueueBindOk)

    def course(self, assumption: Assumption[bool]) -> Course:
        if assumption.fact.name.startswith(EXCHANGE):
            return self._try_exchange(assumption)
        return self._try_binding(assumption)

    def _try_exchange(self, assumption: Assumption[bool]) -> Course:
        name = assumption.fact.name
        self.publish(name, "any", b"trial")
        result = yield from self.await_confirms(1)
        if result.closed is not None and result.closed.reply_code != NOT_FOUND:
            raise BrokenPromise("legal requests are served", f"{self.name}'s channel was closed: {result.closed}")
        found = result.closed is None
        if assumption.holds and found != assumption.value:
            self._break(assumption, "a publish to it is confirmed" if found else str(result.closed))

    def _try_binding(self, assumption: Assumption[bool]) -> Course:
        self._count += 1
        body = f"trial {self._count}".encode()
        self.publish(SOURCE.exchange, f"{assumption.fact.name}.{self.name}", body, mandatory=True)
        result = yield from self.await_confirms(1)
        if result.closed is not None:
            raise BrokenPromise("legal requests are served", f"{self.name}'s channel was closed: {result.closed}")
        arrived = False
        while True:
            self.send(BasicGet(self._queue, no_ack=True))
            method, found = yield
            if not isinstance(method, BasicGetOk | BasicGetEmpty | ChannelClose):
                raise self.unexpected(method)
            if not isinstance(method, BasicGetOk):
                break
            arrived = arrived or found == body
        if assumption.holds and arrived != assumption.value:
            self._break(assumption, f"a message for it {'arrives' if arrived else 'does not arrive'}")
        if assumption.holds and assumption.value and result.returned:
            self._break(assumption, "a message for it was returned")

    def _break(self, assumption: Assumption[bool], what: str) -> None:
        state = "is there" if assumption.value else "is gone"
        raise BrokenPromise(
            PROMISE,
            f"a client received a reply that {assumption.fact.name} {state}; at {self.name} {what} afterwards",
        )
