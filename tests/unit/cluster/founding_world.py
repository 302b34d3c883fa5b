"""Brokers that found a cluster, with disks and links that a seed breaks: crashes, lost stores, cut links at any point.

The messages of a link arrive in order or not at all. A broker's messages may still arrive after it died, and even after
its store was lost; a new link to it comes after the end of the old one was noticed.
"""

from __future__ import annotations

from collections import deque
from random import Random

from pandomq.cluster.founding import Begin, Founding, Join, Primary, Save, SendFounding
from pandomq.cluster.founding_messages import (
    FoundingAttempt,
    FoundingMessage,
    decode_attempt,
    decode_message,
    encode_attempt,
    encode_message,
)

END = None
"""The last item on a link."""


class Store:
    def __init__(self, store_id: str) -> None:
        self.id = store_id
        self.attempt: bytes = b""
        self.cluster_id = ""
        self.votes = False


class World:
    def __init__(self, names: str, seed: int) -> None:
        self.random = Random(seed)
        self.names = list(names)
        self.stores = {name: self._new_store(name) for name in names}
        self.running: dict[str, Founding] = {}
        self.disk: dict[str, deque[Save | Begin | Join]] = {name: deque() for name in names}
        self.pipes: dict[tuple[str, str], deque[FoundingMessage | None]] = {}
        """Those that their receiver takes for open."""
        self.roughness = self.random.choice((0.01, 0.03, 0.1))
        self.now_ms = 0
        self.begun: dict[tuple[str, str], set[str]] = {}
        """The stores that began as voters, by cluster and broker."""
        self.wiped_since = False
        """A store was lost after a cluster had begun, or was about to."""

    def _new_store(self, name: str) -> Store:
        return Store(f"{name}-{self.random.getrandbits(64):x}")

    # Possible events.

    def start(self, name: str, *, bootstrap: bool = False) -> None:
        if name in self.running:
            return
        store = self.stores[name]
        founding = Founding(
            name,
            store.id,
            [Primary(other, f"{other}:5672") for other in self.names],
            cluster_id=store.cluster_id,
            attempt=decode_attempt(store.attempt),
            draw_id=lambda: f"{self.random.getrandbits(64):x}",
            bootstrap=bootstrap,
        )
        self.running[name] = founding
        founding.start()
        self._carry_out(name)

    def crash(self, name: str) -> None:
        """The disk forgets all requests that it has not completed."""
        if self.running.pop(name, None) is None:
            return
        self.disk[name].clear()
        for sender, receiver in list(self.pipes):
            if sender == name:
                self.pipes[sender, receiver].append(END)
            elif receiver == name:
                del self.pipes[sender, receiver]

    def wipe(self, name: str) -> None:
        self.crash(name)
        self.wiped_since = self.wiped_since or any(store.attempt for store in self.stores.values())
        self.stores[name] = self._new_store(name)

    def link(self, one: str, other: str) -> None:
        pairs = [(one, other), (other, one)]
        if one == other or any(pair in self.pipes for pair in pairs) or {one, other} - self.running.keys():
            return
        for pair in pairs:
            self.pipes[pair] = deque()
        for sender, receiver in pairs:
            self.running[receiver].connected(sender)
            self._carry_out(receiver)

    def cut(self, one: str, other: str) -> None:
        for pair in ((one, other), (other, one)):
            if pair in self.pipes and END not in self.pipes[pair]:
                self.pipes[pair].append(END)

    def deliver(self, pair: tuple[str, str], *, lose: bool = False) -> None:
        sender, receiver = pair
        pipe = self.pipes.get(pair)
        if not pipe:
            return
        message = pipe.popleft()
        founding = self.running[receiver]
        if message is END:
            del self.pipes[pair]
            founding.disconnected(sender)
            if (receiver, sender) in self.pipes:
                self.cut(receiver, sender)
        elif not lose:
            founding.received(sender, decode_message(encode_message(message)))
        self._carry_out(receiver)

    def sync(self, name: str) -> None:
        if not self.disk[name]:
            return
        store, effect = self.stores[name], self.disk[name].popleft()
        match effect:
            case Save(attempt):
                store.attempt = encode_attempt(attempt)
                self.running[name].saved()
                self._carry_out(name)
                return
            case Begin(attempt):
                store.attempt, store.cluster_id, store.votes = encode_attempt(attempt), attempt.cluster_id, True
                self.begun.setdefault((attempt.cluster_id, name), set()).add(store.id)
            case Join(cluster_id, known):
                store.attempt, store.cluster_id = encode_attempt(known), cluster_id
        self.check()
        self.crash(name)
        self.start(name)

    def tick(self, name: str) -> None:
        if name in self.running:
            self.now_ms += 1_000
            self.running[name].tick(self.now_ms)
            self._carry_out(name)

    def _carry_out(self, name: str) -> None:
        for effect in self.running[name].take_effects():
            if not isinstance(effect, SendFounding):
                self.disk[name].append(effect)
            elif (name, effect.peer) in self.pipes and END not in self.pipes[name, effect.peer]:
                self.pipes[name, effect.peer].append(effect.message)

    # A seed's choice.

    def disturb(self) -> None:
        """One thing happens; seeds differ in how much of it is trouble."""
        random, name, other = self.random, *self.random.sample(self.names, 2)
        if random.random() < self.roughness:
            random.choice((self.crash, self.wipe, lambda name: self.cut(name, other)))(name)
            return
        match random.randrange(10):
            case 0:
                self.start(name)
            case 1 | 2:
                self.link(name, other)
            case 3:
                self.tick(name)
            case 4 | 5:
                self.sync(name)
            case _:
                if self.pipes:
                    self.deliver(random.choice(list(self.pipes)), lose=random.random() < self.roughness)

    def settle(self) -> None:
        """All run, all links are up, and nothing breaks any more."""
        for _ in range(30):
            for name in self.names:
                self.start(name)
                self.tick(name)
                for other in self.names:
                    self.link(name, other)
            while any(self.disk.values()) or any(self.pipes.values()):
                for name in self.names:
                    self.sync(name)
                for pair in list(self.pipes):
                    self.deliver(pair)

    # Invariants.

    def check(self) -> None:
        voting = {store.cluster_id for store in self.stores.values() if store.votes}
        assert len(voting) <= 1, f"two clusters have begun: {voting}"
        for (cluster_id, name), stores in self.begun.items():
            assert len(stores) == 1, (
                f"{name} votes in {cluster_id} with stores that do not know of each other: {stores}"
            )
        for store in self.stores.values():
            assert not store.cluster_id or any(cluster_id == store.cluster_id for cluster_id, _ in self.begun)

    def attempt_of(self, name: str) -> FoundingAttempt:
        attempt = decode_attempt(self.stores[name].attempt)
        assert attempt is not None
        return attempt
