"""The cluster over HTTP: three nodes in this process, each with its API; changes find the root from any of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

import httpx
import msgspec
import pytest

from pandomq.admin.application import Application
from pandomq.admin.key_login import authorization
from pandomq.ids import NodeName
from pandomq.node.node import Node
from pandomq.node.settings import NodeSettings
from pandomq.node.view_records import ListenerView, PeerLinkView
from pandomq.replica.membership import Member
from pandomq.runtime.clock import Clock
from pandomq.runtime.http import HttpServer
from pandomq.runtime.listen import Address
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

    async def open(self) -> None:
        for name in self.world.machines:
            server = HttpServer(self._application(name))
            [address, *_] = await server.listen(Address("127.0.0.1", 0))
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
        return Application(node, NodeSettings(name=name, cluster=cluster), WorldClock(self.world), lambda: None)

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


def test_every_broker_shows_the_cluster() -> None:
    async def test(made: Brokers) -> None:
        for name in made.world.machines:
            shown = (await made.ask(name, "GET", "/api/cluster")).json()
            assert (shown["name"], shown["root"]) == (name, made.root)
            assert {member["name"]: member["role"] for member in shown["members"]} == {
                member: "root" if member == made.root else "backup" for member in made.world.machines
            }
            assert [(one["root"], one["term"]) for one in shown["elections"]] == [(made.root, shown["term"])]
            assert shown["elections"][0]["at_ms"] > 1_700_000_000_000
            assert {link["name"] for link in shown["links"]} == set(made.world.machines) - {name}
            lags = [member["lag_bytes"] for member in shown["members"] if member["name"] != name]
            assert lags == ([0, 0] if name == made.root else [None, None])

    on_brokers(test)


def test_health_tells_the_root_from_the_others() -> None:
    async def test(made: Brokers) -> None:
        root, backup = made.root, made.backups[0]
        answer = await made.ask(root, "GET", "/api/health/root")
        assert (answer.status_code, answer.text) == (200, "root\n")
        answer = await made.ask(backup, "GET", "/api/health/root")
        told = f"this broker is a backup; the root is {root} at {root}.example:5672\n"
        assert (answer.status_code, answer.text) == (503, told)
        answer = await made.ask(backup, "GET", "/api/health/ready")
        assert (answer.status_code, answer.text) == (200, f"ready: {told}")
        assert (await made.ask(root, "GET", "/readyz")).text == "ready\n"
        # Cut off from the others, neither does its part any longer.
        made.world.isolate(root)
        await until(lambda: made.world.machines[root].restarts != [])
        await asyncio.sleep(0.05)
        answer = await made.ask(root, "GET", "/api/health/ready")
        assert (answer.status_code, answer.text.partition(";")[2]) == (503, " no root is known at present\n")

    on_brokers(test)


def test_a_change_goes_to_the_root_from_any_broker() -> None:
    async def test(made: Brokers) -> None:
        for name in made.world.machines:
            assert (await made.ask(name, "PUT", f"/api/queues/%2F/from%2F{name}", {"durable": True})).status_code == 201
        await until(lambda: all(len(list(made.world.node(name).views.queues())) == 3 for name in made.world.machines))
        backup = made.backups[0]
        published = await made.ask(
            backup,
            "POST",
            "/api/exchanges/%2F/amq.default/publish",
            {"properties": {}, "routing_key": f"from/{backup}", "payload": "x", "payload_encoding": "string"},
        )
        assert published.json() == {"routed": True}
        got = await made.ask(
            backup,
            "POST",
            f"/api/queues/%2F/from%2F{backup}/get",
            {"count": 1, "ackmode": "ack_requeue_false", "encoding": "auto"},
        )
        assert [message["payload"] for message in got.json()] == ["x"]
        assert (await made.ask(backup, "DELETE", "/api/queues/%2F/none")).status_code == 404
        assert (await made.ask(backup, "GET", "/api/aliveness-test/%2F")).json() == {"status": "ok"}
        async with made.client(backup, user="nobody") as client:
            assert (await client.put("/api/queues/%2F/q", json={})).status_code == 401

    on_brokers(test)


def test_without_a_root_a_change_is_refused_with_a_reason() -> None:
    async def test(made: Brokers) -> None:
        left = made.backups[0]
        for name in list(made.world.machines):
            if name != left:
                made.world.kill(name)
        await until(lambda: made.world.node(left).views.cluster().root is None)
        answer = await made.ask(left, "PUT", "/api/queues/%2F/q", {})
        assert answer.status_code == 503
        assert answer.json()["reason"].endswith("no root is known at present")

    on_brokers(test)


def test_what_was_passed_on_is_not_passed_on_again() -> None:
    async def test(made: Brokers) -> None:
        backup = made.backups[0]
        async with made.client(backup) as client:
            answer = await client.put("/api/queues/%2F/q", json={}, headers={"x-pandomq-forwarded-by": "n9"})
        assert answer.status_code == 503
        assert answer.json()["reason"] == f"n9 took {backup} for the one to ask, and that is {made.root}"

    on_brokers(test)


def test_the_root_hands_over() -> None:
    async def test(made: Brokers) -> None:
        old, new = made.root, made.backups[0]
        answer = await made.ask(made.backups[1], "POST", "/api/cluster/promote", {"name": new})
        assert (answer.status_code, answer.json()) == (200, {"done": f"handed over to {new}"})
        await until(lambda: made.world.root == new)
        elections = (await made.ask(old, "GET", "/api/cluster")).json()["elections"]
        assert [one["root"] for one in elections] == [old, new], "a node that begins again remembers"
        answer = await made.ask(new, "POST", "/api/cluster/promote", {"name": new})
        assert answer.json() == {"done": f"{new} is the root already"}
        assert (await made.ask(new, "POST", "/api/cluster/promote", {"name": "n9"})).status_code == 404

    on_brokers(test)


def test_a_forced_promotion_is_refused_while_a_root_is_heard() -> None:
    async def test(made: Brokers) -> None:
        backup, other = made.backups
        body = {"name": backup, "force": True, "dead": [other]}
        answer = await made.ask(other, "POST", "/api/cluster/promote", body)
        assert answer.status_code == 400
        assert answer.json()["reason"] == f"{made.root} is root and was heard just now"
        answer = await made.ask(backup, "POST", "/api/cluster/promote", {"name": backup, "dead": [other]})
        assert answer.json()["reason"] == "nobody is dead unless a promotion is forced"

    on_brokers(test)


def test_a_lost_majority_is_given_up_by_force() -> None:
    async def test(made: Brokers) -> None:
        left = made.backups[0]
        dead = [name for name in made.world.machines if name != left]
        for name in dead:
            made.world.kill(name)
        await until(lambda: made.world.node(left).views.cluster().root is None)
        answer = await made.ask(left, "POST", "/api/cluster/promote", {"name": left, "force": True, "dead": dead})
        assert (answer.status_code, answer.json()) == (200, {"done": f"epoch 1 begins without {', '.join(dead)}"})
        await until(lambda: made.world.root == left)
        shown = (await made.ask(left, "GET", "/api/cluster")).json()
        assert (shown["epoch"], [member["name"] for member in shown["members"]]) == (1, [left])

    on_brokers(test)


def test_a_primary_is_removed_and_added() -> None:
    async def test(made: Brokers) -> None:
        away, asked = made.backups
        assert (await made.ask(asked, "DELETE", f"/api/cluster/members/{away}")).status_code == 204
        shown = (await made.ask(made.root, "GET", "/api/cluster")).json()["members"]
        assert {member["name"]: member["role"] for member in shown}[away] == "learner"
        assert (await made.ask(asked, "DELETE", "/api/cluster/members/n9")).status_code == 404
        answer = await made.ask(asked, "PUT", f"/api/cluster/members/{away}", {"address": f"{away}.example:5672"})
        assert answer.status_code == 201
        members = made.world.node(made.root).peers.notices.membership.voters
        assert Member(NodeName(away), f"{away}.example:5672") in members and len(members) == 3
        again = await made.ask(asked, "PUT", f"/api/cluster/members/{away}", {"address": f"{away}.example:5672"})
        assert again.status_code == 204

    on_brokers(test)


def test_who_has_the_key_may_steer_the_cluster_and_nothing_else() -> None:
    async def test(made: Brokers) -> None:
        backup, other = made.backups
        body = msgspec.json.encode({"name": other})

        async def by_key(method: str, path: str, body: bytes = b"", key: bytes = KEY) -> httpx.Response:
            header = authorization(key, method, path.encode(), body, int(time.time()))
            async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{made.ports[backup]}") as client:
                return await client.request(method, path, content=body, headers={"authorization": header})

        assert (await by_key("GET", "/api/cluster")).json()["name"] == backup
        assert (await by_key("GET", "/api/cluster", key=b"another key")).status_code == 401
        assert (await by_key("GET", "/api/overview")).status_code == 401
        # It goes on to the root, which knows it as well.
        assert (await by_key("POST", "/api/cluster/promote", body)).json() == {"done": f"handed over to {other}"}

    on_brokers(test)


@pytest.mark.parametrize("body", [{}, {"address": "nowhere"}, {"address": "h:0"}, {"address": "n1.example:5672"}])
def test_members_that_cannot_be(body: dict[str, str]) -> None:
    async def test(made: Brokers) -> None:
        assert (await made.ask(made.root, "PUT", "/api/cluster/members/n4", body)).status_code == 400

    on_brokers(test)


def test_only_who_is_there_can_become_a_primary() -> None:
    async def test(made: Brokers) -> None:
        answer = await made.ask(made.root, "PUT", "/api/cluster/members/n4", {"address": "n4.example:5672"})
        assert answer.json()["reason"] == "n4 is not linked: start it first, with the key of this cluster"

    on_brokers(test)


def test_a_root_that_is_removed_resigns() -> None:
    async def test(made: Brokers) -> None:
        old = made.root
        answer = await made.ask(old, "DELETE", f"/api/cluster/members/{old}")
        assert (answer.status_code, answer.text) == (204, "")
        await until(lambda: made.world.root not in (None, old))
        assert old not in made.world.node(made.root).peers.notices.membership.names

    on_brokers(test)


def test_nodes_are_all_brokers() -> None:
    async def test(made: Brokers) -> None:
        away = made.backups[0]
        made.world.kill(away)
        shown = (await made.ask(made.root, "GET", "/api/nodes")).json()
        assert {node["name"]: node["running"] for node in shown} == {name: name != away for name in made.world.machines}
        own = next(node for node in shown if node["name"] == made.root)
        assert len(own["cluster_links"]) == 1 and own["mem_used"] > 0
        assert (await made.ask(made.root, "GET", f"/api/nodes/{away}")).json()["role"] == "absent"
        assert (await made.ask(made.root, "GET", "/api/nodes/n9")).status_code == 404
        check = await made.ask(made.root, "GET", "/api/health/checks/node-is-quorum-critical")
        assert check.status_code == 503

    on_brokers(test)


def test_metrics_show_the_cluster() -> None:
    async def test(made: Brokers) -> None:
        text = (await made.ask(made.root, "GET", "/metrics")).text
        backup = made.backups[0]
        assert 'pandomq_cluster_role{role="root"} 1' in text
        assert 'pandomq_cluster_role{role="backup"} 0' in text
        assert f'pandomq_member_in_sync{{member="{backup}"}} 1' in text
        assert f'pandomq_member_lag_bytes{{member="{backup}"}} 0' in text
        assert f'pandomq_link_up{{peer="{backup}"}} 1' in text
        assert "pandomq_cluster_elections_total 1" in text
        assert "pandomq_log_commit_index " in text
        assert "pandomq_log_syncs_total 0" in text, "simulated disks are not timed"
        assert "pandomq_cluster_alarm" not in text

    on_brokers(test)
