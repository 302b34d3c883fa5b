"""Anything legal that clients, other brokers and administrators may do at a root, drawn by a seed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any

from pandomq import methods
from pandomq.broker.leases.asks import LeaseAsk, LeaseEnds
from pandomq.broker.log import commands
from pandomq.broker.staging.names import StagingAttempt
from pandomq.broker.staging.staging import Chosen
from pandomq.errors import Fault
from pandomq.fieldtable import Int32
from pandomq.properties import Properties
from tests.unit.broker.conversation import Peer
from tests.unit.broker.equal_scene import Root
from tests.unit.broker.staging_scene import frames

WAIT_CHANGES_SHARE = 0.1
DEAD = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "b"}
STREAM = {"x-queue-type": "stream", "x-max-length-bytes": 300, "x-stream-max-segment-size-bytes": 100}
ARGUMENTS: dict[str, list[dict[str, Any]]] = {
    "a": [{}, {"x-message-ttl": 400, **DEAD}],
    "b": [{}],
    "c": [{"x-max-length": 3, **DEAD}, {"x-max-priority": 3}, {"x-delivery-limit": 1, **DEAD}],
    "d": [{"x-expires": 2000}, {"x-last-value-key": "key"}],
    "full": [{"x-max-length": 2, "x-overflow": "reject-publish"}],
    "s": [STREAM, {"x-queue-type": "stream", "x-max-age": "1s", "x-stream-max-segment-size-bytes": 100}],
    "t": [{**STREAM, "x-pandomq-archive": "a"}],
}
QUEUES = tuple(ARGUMENTS)
EXCHANGES = {
    "x": ("direct", {}),
    "topics": ("topic", {}),
    "later": ("x-delayed-message", {"x-delayed-type": "direct"}),
    "ring": ("x-consistent-hash", {}),
}
KEYS = ("k", "1", "2", *QUEUES)
NAMES = ("p", "q", "r", "n", "m")
VHOSTS = ("/", "v")
USERS = ("ann", "bob")
DEFINITIONS = (
    b'{"max-length": 1}',
    b'{"max-length": 2, "dead-letter-exchange": "", "dead-letter-routing-key": "b"}',
    b'{"message-ttl": 400}',
    b'{"expires": 1000}',
    b'{"overflow": "reject-publish", "max-length-bytes": 3}',
    b'{"alternate-exchange": "amq.direct"}',
    b'{"max-length-bytes": 200}',
    b'{"max-age": "1s"}',
)


class Course:
    def __init__(self, seed: int) -> None:
        self.random = random = Random(seed)
        self.root = Root(random, replicated=random.random() < 0.5, lag_ms=random.choice((0, 0, 30)))
        self._peers: dict[object, Peer] = {}
        self._sent: dict[int, int] = {}
        """By tunnel: how much it has sent."""
        self._number = 0
        self.root.administer(commands.PutVhost("v"), commands.PutPermissions("v", "guest", ".*", ".*", ".*"))
        for name, choices in ARGUMENTS.items():
            self.root.peer().declare(name, durable=True, arguments=choices[0])
        for name, (kind, arguments) in EXCHANGES.items():
            self._peer("setup").send(methods.ExchangeDeclare(name, kind, durable=True, arguments=arguments))

        self.root.committed_share = random.choice((0.3, 1.0))

    def play(self, count: int) -> None:
        acts: list[tuple[Callable[[], None], int]] = [
            (self._say, 20),
            (self._publish, 20),
            (self._transact, 6),
            (self._publish_numbered, 12),
            (self._commit_numbered, 3),
            (self._send_through_tunnel, 6),
            (self._stage, 10),
            (self._decide, 14),
            (self._drop, 1),
            (self._lease, 6),
            (self._release, 5),
            (self._end_lease, 2),
            (self._store_offset, 6),
            (self._administer, 8),
            (self._leave, 2),
            (self._pass_time, 6),
            (self.root.add_follower, 2),
        ]
        kinds, weights = [act for act, _ in acts], [weight for _, weight in acts]
        for act in self.random.choices(kinds, weights, k=count):
            if self.random.random() < WAIT_CHANGES_SHARE:
                # While publishes wait, batches that are decided stay open.
                self.root.broker.held.publishes_wait = not self.root.broker.held.publishes_wait
            with suppress(Fault, LeaseEnds):
                act()
            self.root.run([])
        self.root.broker.held.publishes_wait = False
        self.root.committed_share = 1.0
        # Successors have their own traces.
        self.root.administer(*(commands.PutTracing(vhost, 0.0) for vhost in self.root.broker.state.vhosts))
        for peer in self._peers.values():
            peer.leave()
        self.root.compare()
        if self.root.broker.engine.replicated:
            self.root.compare_successors()

    # Clients of AMQP.

    def _peer(self, key: object, *, origin: str | None = None, vhost: str = "/") -> Peer:
        """The same for the same key, with channel 1 open, until it is closed or leaves."""
        peer = self._peers.get(key)
        if peer is not None and peer.client in self.root.closed:
            peer.leave()
        if peer is None or peer.client.gone:
            peer = self._peers[key] = self.root.connect(origin=origin, vhost=vhost)
        if any(isinstance(method, methods.ChannelClose) for method in peer.heard()):
            peer.send(methods.ChannelCloseOk())
        if not peer.client.channels:
            peer.send(methods.ChannelOpen())
        return peer

    def _client(self) -> Peer:
        number = self.random.randrange(4)
        vhost = "v" if number == 3 and "v" in self.root.broker.state.vhosts else "/"
        return self._peer((vhost, number), vhost=vhost)

    def _say(self) -> None:
        peer = self._client()
        for _ in range(self.random.randint(1, 3)):
            peer.say(self._method())
        peer.flush()

    def _method(self) -> methods.Method:
        pick, flag = self.random.choice, self.random.random() < 0.5
        queue, exchange, key = pick(QUEUES), pick(tuple(EXCHANGES)), pick(KEYS)
        kind, arguments = EXCHANGES[exchange]
        return pick(
            (
                methods.QueueDeclare(queue, durable=pick((True, True, False)), arguments=pick(ARGUMENTS[queue])),
                methods.QueueDeclare(queue, durable=True, auto_delete=flag, arguments=pick(ARGUMENTS[queue])),
                methods.ExchangeDeclare(exchange, kind, durable=True, auto_delete=flag, arguments=arguments),
                methods.ExchangeDeclare(exchange, kind, durable=True, arguments=arguments),
                methods.QueueBind(queue, exchange, key),
                methods.QueueBind(queue, exchange, key),
                methods.QueueBind(queue, "ring", pick(("1", "2", "3"))),
                methods.QueueUnbind(queue, exchange, key),
                methods.ExchangeBind(exchange, pick(tuple(EXCHANGES)), key),
                methods.ExchangeUnbind(exchange, pick(tuple(EXCHANGES)), key),
                methods.QueueDelete(queue),
                methods.ExchangeDelete(exchange),
                methods.QueuePurge(queue),
                methods.BasicConsume(pick(QUEUES[:5]), pick(("t", "u")), no_ack=flag),
                methods.BasicCancel(pick(("t", "u"))),
                methods.BasicGet(queue, flag),
                methods.BasicGet(queue, False),
                methods.BasicAck(0, True),
                methods.BasicNack(0, True, flag),
                methods.BasicRecover(True),
                methods.TxSelect(),
                methods.TxCommit(),
                methods.TxCommit(),
                methods.TxRollback(),
            )
        )

    def _publish(self) -> None:
        peer, pick = self._client(), self.random.choice
        for _ in range(self.random.randint(1, 4)):
            exchange = pick(("", "", "", "later", *EXCHANGES))
            headers = pick([None, {"x-delay": Int32(pick((70, 900)))}, {"key": pick("12")}, {"CC": ["b"]}])
            properties = Properties(
                headers=headers,
                delivery_mode=pick((1, 2, 2)),
                priority=pick((None, 1, 3)),
                expiration=pick((None, None, "30", "2000")),
            )
            peer.say_publish(exchange, pick(KEYS), b"m" * self.random.randint(0, 20), properties)
        peer.flush()

    def _transact(self) -> None:
        peer = self._peer("transactions")
        peer.say(methods.TxSelect())
        for _ in range(self.random.randint(1, 3)):
            headers = self.random.choice([None, {"x-delay": Int32(900)}])
            expiration = self.random.choice((None, "900"))
            exchange, key = self.random.choice((("", "a"), ("", "s"), ("x", "k"), ("later", "k")))
            peer.say_publish(exchange, key, b"m", Properties(headers=headers, expiration=expiration, delivery_mode=2))
        peer.say(methods.TxCommit()).flush()

    def _leave(self) -> None:
        key = self.random.choice(list(self._peers))
        self._peers.pop(key).leave()

    # Producers.

    def _numbered(self) -> Properties:
        """Mostly rising numbers, with gaps."""
        self._number += self.random.choice((1, 1, 2))
        number = max(0, self._number - self.random.choice((0, 0, 0, 1, 5)))
        headers = {"x-producer": self.random.choice(NAMES), "x-sequence": number}
        return Properties(delivery_mode=self.random.choice((1, 2)), headers=headers)

    def _publish_numbered(self) -> None:
        """Several connections in one batch."""
        peers = []
        for _ in range(self.random.randint(1, 5)):
            number = self.random.randrange(6)
            peer = self._peer(number, origin=f"n{number}")
            peer.client.identity = peer.client.identity or self.random.getrandbits(60)
            exchange, key = self.random.choice((("", "full"), ("", "full"), ("x", "k"), ("", "a"), ("", "nowhere")))
            peer.say_publish(exchange, key, b"n", self._numbered(), mandatory=self.random.random() < 0.5)
            peers.append(peer)
        self.root.run([(peer.client, peer.take_inputs()) for peer in dict.fromkeys(peers)])

    def _commit_numbered(self) -> None:
        peer = self.root.connect()
        peer.say(methods.ChannelOpen()).say(methods.TxSelect())
        for _ in range(3):
            peer.say_publish("", self.random.choice(QUEUES), b"n", self._numbered())
        peer.say(methods.TxCommit()).flush()
        peer.leave()

    def _send_through_tunnel(self) -> None:
        """A client of another broker, which numbers its publishes or commits."""
        producer, in_transaction = self.random.randint(1, 5), self.random.random() < 0.4
        sent = self._sent.setdefault(producer, 0)
        self._sent[producer] += 1
        peer = self.root.connect(origin="n9")
        peer.send(methods.ChannelOpen(f"{producer}:{sent}"))
        peer.send(methods.TxSelect() if in_transaction else methods.ConfirmSelect())
        peer.say_publish("", self.random.choice(QUEUES), b"m", Properties(delivery_mode=2, expiration="900"))
        if in_transaction:
            peer.say(methods.TxCommit())
        peer.flush()
        peer.leave()

    # Staging.

    def _attempt(self) -> StagingAttempt:
        query = self.random.choice(("u", "w", "x"))
        last = self.root.broker.state.staged.last_batch("/", "guest", query)
        return StagingAttempt(max(0, last + self.random.choice((0, 1, 1, 1, 2))), 0, self.random.choice("ab"), query)

    def _part_count(self, attempt: StagingAttempt) -> int:
        queue = self.root.broker.state.vhosts["/"].inner_queues.get(attempt.queue_name)
        return 0 if queue is None else queue.kernel.next_sequence - 1

    def _stage(self) -> None:
        vhost, attempt = self.root.broker.state.vhosts["/"], self._attempt()
        octets, part = frames("1", "2", key=self.random.choice(QUEUES)), self._part_count(attempt)
        staging, access = self.root.broker.staging, vhost.access["guest"]
        staging.stage(vhost, access, attempt, part, octets, lambda decided: None, self.root.now_ms)

    def _decide(self) -> None:
        vhost, attempt = self.root.broker.state.vhosts["/"], self._attempt()
        chosen = [Chosen(0, attempt.name, self._part_count(attempt))] if self.random.random() < 0.7 else []
        staging, access = self.root.broker.staging, vhost.access["guest"]
        staging.commit(
            vhost, access, attempt.query, attempt.batch, chosen, lambda: None, lambda _: None, self.root.now_ms
        )

    def _drop(self) -> None:
        vhost, attempt = self.root.broker.state.vhosts["/"], self._attempt()
        self.root.broker.staging.drop(vhost, "guest", [attempt], lambda: None, self.root.now_ms)

    # Leases and streams.

    def _lease(self) -> None:
        queue, name = self.random.choice(("a", "b", "c")), self.random.choice(("one", "two"))
        timeout_ms = self.random.choice((1000, 5000))
        ask = LeaseAsk("/", queue, name, "guest", self.random.randint(1, 6), 1000, timeout_ms)
        self.root.broker.leases.lease(ask, lambda view: None, self.root.now_ms)

    def _release(self) -> None:
        for lease in self.root.broker.state.leases:
            offset = self.random.randint(lease.first_offset, lease.end_offset)
            leases = self.root.broker.leases
            leases.release(lease.vhost, lease.queue, lease.name, offset, lambda view: None, self.root.now_ms)

    def _end_lease(self) -> None:
        for lease in list(self.root.broker.state.leases)[:1]:
            self.root.broker.leases.end(lease.vhost, lease.queue, lease.name, lambda view: None, self.root.now_ms)

    def _store_offset(self) -> None:
        name = self.random.choice(("s", "t"))
        stream = self.root.broker.streams.find("/", name)
        offset = self.random.randint(0, 9) if stream is None else self.random.randint(0, stream.committed_end + 3)
        reader = self.random.choice(("a", *NAMES))
        self.root.broker.streams.store_offset("/", name, "guest", reader, offset, lambda fault: None, self.root.now_ms)

    # Administrators, and time.

    def _administer(self) -> None:
        pick = self.random.choice
        vhost, user, pattern, operator = pick(VHOSTS), pick(USERS), pick((".*", "^a", "[stx]")), pick((True, False))
        put_policy = commands.PutPolicy(
            vhost, pick("op"), pattern, pick(("all", "queues", "exchanges")), pick((0, 1)), pick(DEFINITIONS), operator
        )
        choices: tuple[commands.AdministrativeCommand, ...] = (
            *[put_policy] * 4,
            commands.DeletePolicy(vhost, pick("op"), operator),
            commands.PutUser(user, "", "scrypt", (pick(("management", "monitoring")),)),
            commands.DeleteUser(user),
            commands.PutPermissions(vhost, user, ".*", pattern, ".*"),
            commands.DeletePermissions(vhost, user),
            commands.PutTopicPermissions(vhost, user, "topics", pattern, ".*"),
            commands.DeleteTopicPermissions(vhost, user, pick(("", "topics"))),
            commands.PutVhost("v", pick(("", "described"))),
            commands.PutPermissions("v", "guest", ".*", ".*", ".*"),
            commands.DeleteVhost("v"),
            commands.PutTracing(vhost, pick((0.0, 0.5))),
            commands.PutLimits("vhost", vhost, {"max-queues": pick((None, -1, 30))}),
            commands.PutLimits("user", user, {"max-channels": pick((None, 5))}),
        )
        self.root.administer(pick(choices))

    def _pass_time(self) -> None:
        self.root.pass_time(self.random.choice((1, 50, 300, 1100, 2500)))
