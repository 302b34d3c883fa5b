"""The cluster over HTTP: three nodes in this process, each with its API; changes find the root from any of them."""

from __future__ import annotations

import asyncio
import time
from base64 import b64encode
from functools import partial
from typing import Any

import httpx
import msgspec
import pytest

from pandomq.admin.access.key_login import authorization
from pandomq.cluster.limits import PASSED_PART_BYTES_MAX
from pandomq.cluster.passed_requests import PassedRequest
from pandomq.ids import NodeName
from pandomq.replica.members.membership import Member
from tests.unit.admin.cluster_api import KEY, Brokers, on_brokers, until


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


def test_the_health_of_a_backup_differs_from_that_of_the_root() -> None:
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
        assert (answer.status_code, answer.text.partition(";")[2]) == (
            503,
            " no root is known at present\n",
        )

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


def test_a_request_that_was_passed_on_is_not_passed_on_again() -> None:
    async def test(made: Brokers) -> None:
        backup, other = made.backups
        answers: list[Any] = []
        request = PassedRequest("PUT", b"/api/queues/%2F/q", "guest", False, (), b"{}")
        requests = made.world.node(other).peer_requests
        assert requests is not None
        requests.ask(backup, request, answers.append)
        await until(lambda: bool(answers))
        assert answers[0].status == 503
        assert f"{other} passed this on to {backup}, but it is a request for {made.root}".encode() in answers[0].body

    on_brokers(test)


def test_no_login_is_passed_on() -> None:
    async def test(made: Brokers) -> None:
        backup = made.backups[0]
        assert (await made.ask(backup, "PUT", "/api/queues/%2F/q", {})).status_code == 201
        said = b"".join(made.passed_on)
        assert b"/api/queues/%2F/q" in said
        assert b"Basic" not in said and b64encode(b"guest:guest") not in said and b"authorization" not in said.lower()

    on_brokers(test)


def test_the_root_checks_the_rights_of_the_user_that_another_broker_names() -> None:
    async def test(made: Brokers) -> None:
        for user, by_key, path, status in (
            ("nobody", False, b"/api/queues/%2F/q", 401),
            ("", True, b"/api/queues/%2F/q", 401),
            ("", True, b"/api/users/ann", 201),
            ("ann", False, b"/api/users/bob", 401),
        ):
            answers: list[Any] = []
            body = b'{"password": "pw", "tags": "management"}'
            requests = made.world.node(made.backups[0]).peer_requests
            assert requests is not None
            requests.ask(made.root, PassedRequest("PUT", path, user, by_key, (), body), answers.append)
            await until(partial(bool, answers))
            assert answers[0].status == status, answers

    on_brokers(test)


def test_a_large_request_is_passed_on_in_parts() -> None:
    async def test(made: Brokers) -> None:
        queues = [{"name": f"q{number}", "vhost": "/"} for number in range(5_000)]
        answer = await made.ask(made.backups[0], "POST", "/api/definitions", {"queues": queues})
        assert answer.status_code == 204
        assert max(map(len, made.passed_on)) < PASSED_PART_BYTES_MAX + 100 < 100_000
        assert made.world.node(made.root).views.queue("/", "q4999") is not None

    on_brokers(test)


def test_messages_are_got_through_any_broker() -> None:
    async def test(made: Brokers) -> None:
        assert (await made.ask(made.root, "PUT", "/api/queues/%2F/q", {})).status_code == 201
        body = {"properties": {}, "routing_key": "q", "payload": "x" * 500_000, "payload_encoding": "string"}
        for _ in range(3):
            published = await made.ask(made.backups[0], "POST", "/api/exchanges/%2F/amq.default/publish", body)
            assert published.json() == {"routed": True}
        get = {"count": 2, "ackmode": "ack_requeue_false", "encoding": "auto"}
        for broker, count in ((made.backups[0], 2), (made.root, 1), (made.backups[1], 0)):
            answer = await made.ask(broker, "POST", "/api/queues/%2F/q/get", get)
            assert [row["payload"] for row in answer.json()] == ["x" * 500_000] * count

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
        assert answer.json() == {"done": f"{new} is already the root"}
        assert (await made.ask(new, "POST", "/api/cluster/promote", {"name": "n9"})).status_code == 404

    on_brokers(test)


def test_a_forced_promotion_is_refused_while_a_root_is_in_contact() -> None:
    async def test(made: Brokers) -> None:
        backup, other = made.backups
        body = {"name": backup, "force": True, "dead": [other]}
        answer = await made.ask(other, "POST", "/api/cluster/promote", body)
        assert answer.status_code == 400
        assert (
            answer.json()["reason"]
            == f"{made.root} is root and was in contact just now: wait for that root, or stop it"
        )
        answer = await made.ask(backup, "POST", "/api/cluster/promote", {"name": backup, "dead": [other]})
        assert (
            answer.json()["reason"]
            == "'dead' is allowed only for a forced promotion: set 'force' to true, or leave it out"
        )

    on_brokers(test)


def test_a_lost_majority_is_given_up_by_force() -> None:
    async def test(made: Brokers) -> None:
        left = made.backups[0]
        dead = [name for name in made.world.machines if name != left]
        for name in dead:
            made.world.kill(name)
        await until(lambda: made.world.node(left).views.cluster().root is None)
        answer = await made.ask(left, "POST", "/api/cluster/promote", {"name": left, "force": True, "dead": dead})
        assert (answer.status_code, answer.json()) == (200, {"done": f"epoch 1 was created without {', '.join(dead)}"})
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
        members = made.world.node(made.root).peers.knowledge.membership.voters
        assert Member(NodeName(away), f"{away}.example:5672") in members and len(members) == 3
        again = await made.ask(asked, "PUT", f"/api/cluster/members/{away}", {"address": f"{away}.example:5672"})
        assert again.status_code == 204

    on_brokers(test)


def test_a_request_with_the_key_may_change_the_cluster_and_nothing_else() -> None:
    async def test(made: Brokers) -> None:
        backup, other = made.backups
        body = msgspec.json.encode({"name": other})

        async def by_key(method: str, path: str, body: bytes = b"", key: bytes = KEY) -> httpx.Response:
            header = authorization(key, method, path.encode(), body, int(time.time()))
            async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{made.ports[backup]}") as client:
                return await client.request(
                    method, path, content=body, headers={"authorization": header, "content-type": "application/json"}
                )

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


def test_only_a_connected_broker_can_become_a_primary() -> None:
    async def test(made: Brokers) -> None:
        answer = await made.ask(made.root, "PUT", "/api/cluster/members/n4", {"address": "n4.example:5672"})
        assert answer.json()["reason"] == "broker n4 is not connected: start it first, with the key of this cluster"

    on_brokers(test)


def test_a_root_that_is_removed_steps_down() -> None:
    async def test(made: Brokers) -> None:
        old = made.root
        answer = await made.ask(old, "DELETE", f"/api/cluster/members/{old}")
        assert (answer.status_code, answer.text) == (204, "")
        await until(lambda: made.world.root not in (None, old))
        assert old not in made.world.node(made.root).peers.knowledge.membership.names

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
