"""A root and fronts in one process, joined by octets that go through real scanners; clients speak to either.

`Cluster.settle` carries octets and commands back and forth until nobody has anything to say. The root can be thrown
away: a second one is made of the first one's committed entries.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from pandomq import kernel
from pandomq.broker.broker import Input
from pandomq.broker.client import Client
from pandomq.broker.limits import BrokerLimits
from pandomq.broker.log.revival import Revival
from pandomq.cluster.hello import VERSION
from pandomq.cluster.proxy.front import Front
from pandomq.cluster.proxy.tunnel import TRUNK, Tunnel
from pandomq.errors import ConnectionFault
from pandomq.fieldtable import decode_table
from pandomq.methods import MethodInput
from pandomq.wire import codec
from tests.unit.broker.conversation import FRAME_BYTES, World

ROUNDS_MAX = 2000
SCANNED_BYTES_MAX = 1 << 20
"""Of a frame: those with headers cannot be split, and dead letters make them longer."""


class Pipe:
    """One tunnel: the front's end, and the root's client."""

    def __init__(self, root: World, front: FrontWorld, tunnel: Tunnel) -> None:
        self.tunnel = tunnel
        self.root = root
        self._down = kernel.Scanner(SCANNED_BYTES_MAX, root.limits.message_bytes_max, inward=True)
        self._up = kernel.Scanner(SCANNED_BYTES_MAX, root.limits.message_bytes_max)
        self.octets_up = 0
        self.octets_down = 0
        self.client = root.broker.connect(
            user=tunnel.user,
            vhost=tunnel.vhost,
            peer=tunnel.peer,
            client_properties=decode_table(tunnel.properties)[0] if tunnel.properties else {},
            frame_max=FRAME_BYTES,
            channel_max=2047,
            now_ms=root.now_ms,
            counted=False,
            origin=front.name,
            trunk=tunnel.purpose == TRUNK,
            identity=(int.from_bytes(front.name.encode(), "big") << 40) + tunnel.number,
        )
        tunnel.opened(FRAME_BYTES, front.cluster.link_version)

    def carry_up(self) -> bool:
        octets = self.tunnel.session.take()
        self.octets_up += len(octets)
        if octets:
            self.root.run([(self.client, _inputs(self._up, octets))])
        return bool(octets)

    def carry_down(self) -> bool:
        octets = b"" if self.client.gone or self.tunnel.congested else self.client.session.take()
        self.octets_down += len(octets)
        if octets:
            # Room in the session may let consumers go on.
            self.root.run([])
            self.tunnel.receive(_inputs(self._down, octets))
        return bool(octets)


def _inputs(scanner: kernel.Scanner, octets: bytes) -> list[Any]:
    inputs: list[Any] = []
    for item in scanner.feed(octets):
        if isinstance(item, kernel.Frame):
            inputs.append(MethodInput(item.channel, codec.decode_method(item.payload)))
        else:
            assert not isinstance(item, kernel.ScanFault), item
            inputs.append(item)
    return inputs


class FrontWorld(World):
    """One front; `run` also carries what it has to say."""

    broker: Front

    def __init__(self, cluster: Cluster, name: str, limits: BrokerLimits) -> None:
        super().__init__(limits=limits)
        self.cluster = cluster
        self.name = name
        self.broker = Front(
            node_name=name,
            encode=codec.encode_frame,
            encode_payload=codec.encode_method,
            random=random.Random(name),
            limits=limits,
        )
        self.pipes: list[Pipe] = []

    def run(self, batch: Sequence[tuple[Client, Sequence[Input]]]) -> None:
        self.work(batch)
        self.cluster.settle()

    def work(self, batch: Sequence[tuple[Client, Sequence[Input]]] = ()) -> bool:
        """One batch. False if there was nothing to do."""
        for client, _ in self.waiting:
            client.ask_again()
        ready = [item for item in self.waiting if not self._must_wait(item[0])]
        if not batch and not ready and not self.broker.active:
            return False
        behind = {client for client, _ in self.waiting if self._must_wait(client)}
        late = [item for item in batch if item[0] in behind]
        now = [*ready, *(item for item in batch if item[0] not in behind)]
        outcome = self.broker.handle(now, self.now_ms)
        waiting = [item for item in self.waiting if item[0] in behind] + late
        self.waiting = [*waiting, *outcome.rest]
        self.closed.update(outcome.closing)
        return True

    def dial(self, root: World | None) -> bool:
        wanted = [tunnel for tunnel in self.broker.wanted if not tunnel.is_over]
        self.broker.wanted.clear()
        if root is None:
            self.broker.wanted += wanted
            return False
        for tunnel in wanted:
            try:
                self.pipes.append(Pipe(root, self, tunnel))
            except ConnectionFault as fault:
                tunnel.closed_by_root(fault)
        return bool(wanted)

    def carry(self) -> bool:
        moved = False
        for pipe in list(self.pipes):
            fault = pipe.root.closed.get(pipe.client)
            moved = pipe.carry_up() or moved
            moved = pipe.carry_down() or moved
            if fault is not None:
                pipe.root.broker.disconnect(pipe.client, self.now_ms)
                pipe.tunnel.closed_by_root(fault)
                self.pipes.remove(pipe)
        for tunnel in self.broker.ended:
            for pipe in [pipe for pipe in self.pipes if pipe.tunnel is tunnel]:
                pipe.carry_up()
                pipe.root.broker.disconnect(pipe.client, self.now_ms)
                pipe.root.run([])
                self.pipes.remove(pipe)
        self.broker.ended.clear()
        return moved

    def lose_tunnels(self) -> None:
        """All connections to the root break, with what is under way."""
        for pipe in self.pipes:
            pipe.tunnel.session.take()
            pipe.tunnel.lost("broken")
        self.pipes.clear()

    def pass_time(self, milliseconds: int) -> None:
        self.cluster.pass_time(milliseconds)

    def tick(self) -> None:
        self.closed.update(self.broker.tick(self.now_ms).closing)

    def trunk_octets_down(self) -> int:
        return sum(pipe.octets_down for pipe in self.pipes if pipe.tunnel.purpose == TRUNK)


class Cluster:
    def __init__(
        self,
        *names: str,
        late: bool = False,
        limits: BrokerLimits | None = None,
        root: World | None = None,
        replicated: bool = False,
    ) -> None:
        self._replicated = replicated
        self.link_version = VERSION
        """That roots speak from now on."""
        self._root = root or World(late=late, limits=limits)
        self.limits = self._root.limits
        self.root: World | None = None
        self._terms: list[int] = []
        """The index of the first entry of each term; the first term is 1."""
        self._commands: dict[int, list[bytes]] = {}
        """By the entry that has them, in the order of the log; those that the fronts do not know."""
        self.fronts = [FrontWorld(self, name, self.limits) for name in names or ("b",)]
        for front in self.fronts:
            front.broker.begin(self._root.broker.configuration())
        self._serve(self._root)

    @property
    def front(self) -> FrontWorld:
        return self.fronts[0]

    def _serve(self, root: World) -> None:
        self.root = self._root = root
        self._terms.append(len(root.entries) + 1)
        root.broker.engine.term = len(self._terms)
        # Several brokers keep the log, were this not a test.
        root.broker.engine.replicated = self._replicated
        root.broker.on_command = lambda command: self._commands.setdefault(len(root.entries) + 1, []).append(command)

    # The root goes, and comes.

    def lose_root(self) -> None:
        """It dies with all that is not written."""
        self.root = None
        for front in self.fronts:
            front.lose_tunnels()
        self.settle()

    def find_root(self, written: int | None = None) -> World:
        """A second one, of the first one's committed entries, or of some more that were written."""
        old = self._root
        if written is not None:
            assert old.committed_index <= written <= len(old.entries)
            old.committed_index = written
        self._commands = {index: said for index, said in self._commands.items() if index <= old.committed_index}
        new = World(limits=self.limits, seed=7)
        new.now_ms = old.now_ms
        revival = Revival(new.broker, lambda _place: None)
        for index, entry in enumerate(old.entries[: old.committed_index], start=1):
            new.entries.append(entry)
            revival.apply(index, sum(first <= index for first in self._terms), entry)
        new.committed_index = len(new.entries)
        revival.finish(new.now_ms, takeover=True)
        self._serve(new)
        # Until all fronts are back, as a node has it.
        new.broker.held.publishes_wait = True
        new.run([])
        new.commit()
        self.pass_time(2_000)
        return new

    def change_root(self, written: int | None = None) -> World:
        self.lose_root()
        return self.find_root(written)

    def stir(self, chance: random.Random, steps: int) -> None:
        """Some of what `settle` does, in any order."""
        root = self.root
        assert root is not None
        for _ in range(steps):
            front = chance.choice(self.fronts)
            match chance.randrange(5):
                case 0:
                    front.work()
                case 1:
                    front.dial(root)
                case 2 if front.pipes:
                    chance.choice(front.pipes).carry_up()
                case 3 if front.pipes:
                    chance.choice(front.pipes).carry_down()
                case 4 if root.late:
                    root.commit(chance.randint(root.committed_index, len(root.entries)))
            self._feed()

    # Time.

    def pass_time(self, milliseconds: int) -> None:
        """For all, with ticks at each deadline on the way."""
        worlds: list[World] = [*self.fronts] if self.root is None else [self.root, *self.fronts]
        end_ms = worlds[-1].now_ms + milliseconds
        while (next_ms := min(world.broker.next_deadline_ms for world in worlds)) <= end_ms:
            for world in worlds:
                world.now_ms = max(world.now_ms, next_ms)
                if world.broker.next_deadline_ms <= next_ms:
                    world.tick()
            self.settle()
        for world in worlds:
            world.now_ms = end_ms
        self.settle()

    # Octets and commands.

    def settle(self) -> None:
        for _ in range(ROUNDS_MAX):
            moved = False
            for front in self.fronts:
                moved = front.dial(self.root) or moved
                moved = front.carry() or moved
            moved = self._feed() or moved
            for front in self.fronts:
                moved = front.work() or moved
                moved = front.carry() or moved
            moved = self._let_publish() or moved
            if not moved:
                return
        raise AssertionError("they never come to rest")

    def _let_publish(self) -> bool:
        root = self.root
        trunks = [trunk for front in self.fronts for trunk in front.broker.trunks.values()]
        if root is None or not root.broker.held.publishes_wait or not all(trunk.settled for trunk in trunks):
            return False
        if any(front.broker.unsettled for front in self.fronts):
            return False
        root.broker.held.publishes_wait = False
        root.run([])
        return True

    def _feed(self) -> bool:
        root = self.root
        known = [index for index in self._commands if root is not None and index <= root.committed_index]
        for index in known:
            commands = self._commands.pop(index)
            for front in self.fronts:
                front.broker.follow(index, commands)
        return bool(known)
