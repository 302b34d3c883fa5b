"""Three nodes in this process, each with its HTTP API, and what they pass on to each other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from types import SimpleNamespace
from typing import Any

import httpx
import msgspec

from pandomq.admin.application import Application
from pandomq.cluster.hello import VERSION
from pandomq.node.node import Node
from pandomq.node.peers.requests import PeerRequests
from pandomq.node.settings import NodeSettings
from pandomq.node.views.records import ListenerView, PeerLinkView
from pandomq.runtime.clock import Clock
from pandomq.runtime.http import HttpServer
from pandomq.runtime.http_connections import ConnectionLimits
from pandomq.runtime.listen import ListenAddress
from tests.unit.node.cluster_world import ClusterWorld

KEY = b"0123456789abcdef"
PATIENCE_S = 30


class WorldClock(Clock):
    def __init__(self, world: ClusterWorld) -> None:
        super().__init__()
        self._world = world

    def now_ms(self) -> int:
        return self._world.now_ms


class Brokers:
    """Their HTTP sides, with real sockets, on a world whose time goes on while somebody waits."""

    def __init__(self, world: ClusterWorld) -> None:
        self.world = world
        self.ports: dict[str, int] = {}
        self._servers: dict[str, HttpServer] = {}
        self._nodes: dict[str, Node] = {}
        self.passed_on: list[bytes] = []
        """The requests that brokers have forwarded to each other."""

    async def open(self) -> None:
        for name in self.world.machines:
            server = HttpServer(self._application(name), ConnectionLimits())
            [address, *_] = await server.listen(ListenAddress("127.0.0.1", 0))
            self._servers[name], self.ports[name] = server, address.port
        self._link()

    def _application(self, name: str) -> Application:
        node, older = self.world.node(name), self._nodes.get(name)
        self._nodes[name] = node
        if older is not None:
            node.views.inherit(older.views)
        else:
            node.views.listeners.append(ListenerView("amqp", "127.0.0.1", 5672))
        cluster = msgspec.structs.replace(self.world.settings, key=KEY)
        node.peer_requests = PeerRequests(self._peer, partial(self._pass_on, name))
        return Application(node, NodeSettings(name=name, cluster=cluster), WorldClock(self.world), lambda: None)

    def _peer(self, name: str) -> Any:
        hello = SimpleNamespace(newest=VERSION, version="1")
        return SimpleNamespace(linked=self.world.machines[name].node is not None, hello=hello)

    def _pass_on(self, sender: str, name: str, data: bytes) -> None:
        """As a link would, with a later step."""
        self.passed_on.append(data)

        def arrive() -> None:
            requests = self._nodes[name].peer_requests
            assert requests is not None
            requests.received(sender, data)

        asyncio.get_running_loop().call_soon(arrive)

    def _link(self) -> None:
        for name, machine in self.world.machines.items():
            if machine.node is not None:
                machine.node.views.peer_links = partial(self._links_of, name)

    def _links_of(self, name: str) -> list[PeerLinkView]:
        places = {peer: f"127.0.0.1:{port}" for peer, port in self.ports.items()}
        return [
            PeerLinkView(peer, place, "", place, "1", "linked", True, self.world.now_ms, 0, 0)
            for peer, place in places.items()
            if peer != name and self.world.machines[peer].node is not None
        ]

    async def run(self) -> None:
        while True:
            self.world.run(1)
            for name, machine in self.world.machines.items():
                if machine.node is not None and machine.node is not self._nodes[name]:
                    self._servers[name].use(self._application(name))
                    self._link()
            await asyncio.sleep(0)

    async def close(self) -> None:
        for server in self._servers.values():
            await server.shut_down()

    def client(self, name: str, user: str = "guest") -> httpx.AsyncClient:
        return httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{self.ports[name]}", auth=(user, "guest"), timeout=PATIENCE_S
        )

    async def ask(self, name: str, method: str, path: str, body: Any = None) -> httpx.Response:
        async with self.client(name) as client:
            return await client.request(method, path, json=body)

    @property
    def root(self) -> str:
        root = self.world.root
        assert root is not None
        return root

    @property
    def backups(self) -> list[str]:
        return [name for name in self.world.machines if name != self.root]


@asynccontextmanager
async def brokers(count: int = 3) -> AsyncIterator[Brokers]:
    world = ClusterWorld(count)
    world.elect()
    world.run(500)
    made = Brokers(world)
    await made.open()
    running = asyncio.create_task(made.run())
    try:
        async with asyncio.timeout(PATIENCE_S):
            yield made
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
        await made.close()


def on_brokers(test: Callable[[Brokers], Awaitable[None]], count: int = 3) -> None:
    async def run() -> None:
        async with brokers(count) as made:
            await test(made)

    asyncio.run(run())


async def until(fulfilled: Callable[[], bool]) -> None:
    while not fulfilled():
        await asyncio.sleep(0)
