"""Dead letters: their headers, where they go, and that they do not go round for ever."""

from typing import Any

import pytest

from pandomq import methods
from pandomq.broker.queues.deaths import DeathRegister
from pandomq.fieldtable import OctetString, Timestamp, encode_table
from pandomq.properties import Properties
from tests.unit.broker.conversation import NOW_MS, Peer, Received, World

NOW_S = NOW_MS // 1000


def with_dlx(exchange: str = "", key: str | None = "dead", **more: Any) -> dict[str, Any]:
    arguments = {"x-dead-letter-exchange": exchange, **{name.replace("_", "-"): value for name, value in more.items()}}
    return arguments if key is None else {**arguments, "x-dead-letter-routing-key": key}


def start(**arguments: Any) -> Peer:
    peer = World().peer()
    peer.declare("dead")
    peer.declare("q", arguments=arguments or with_dlx())
    return peer


def headers_of(received: Received | None) -> dict[str, Any]:
    assert received is not None
    assert received.properties is not None
    return received.properties.headers or {}


def reject(peer: Peer, queue: str = "q") -> None:
    assert peer.get(queue, no_ack=False) is not None
    peer.send(methods.BasicNack(0, True, False))


def test_a_rejected_message_has_the_headers_of_its_death() -> None:
    peer = start()
    peer.publish("amq.fanout", "nowhere")
    peer.publish(
        "", "q", b"body", Properties(content_type="text/plain", headers={"mine": 1}, delivery_mode=2, app_id="a")
    )
    reject(peer)
    dead = peer.get("dead")
    assert dead is not None
    assert dead.method == methods.BasicGetOk(2, False, "", "dead", 0)
    assert dead.body == b"body"
    assert dead.properties == Properties(
        content_type="text/plain",
        headers={
            "mine": 1,
            "x-death": [
                {
                    "count": 1,
                    "reason": "rejected",
                    "queue": "q",
                    "time": Timestamp(NOW_S),
                    "exchange": "",
                    "routing-keys": ["q"],
                }
            ],
            "x-first-death-reason": "rejected",
            "x-first-death-queue": "q",
            "x-first-death-exchange": "",
            "x-last-death-reason": "rejected",
            "x-last-death-queue": "q",
            "x-last-death-exchange": "",
        },
        delivery_mode=2,
        app_id="a",
    )


def test_an_expired_message_loses_its_expiration_and_keeps_it_in_the_record() -> None:
    peer = start()
    peer.publish("", "q", b"", Properties(expiration="100", message_id="m"))
    peer.world.pass_time(99)
    assert peer.counts("q") == (1, 0)
    peer.world.pass_time(1)
    dead = peer.get("dead")
    assert dead is not None
    assert dead.properties is not None
    assert (dead.properties.expiration, dead.properties.message_id) == (None, "m")
    (death,) = headers_of(dead)["x-death"]
    assert (death["reason"], death["original-expiration"]) == ("expired", "100")


def test_reasons() -> None:
    peer = start(**with_dlx(x_message_ttl=10, x_max_length=1))
    peer.publish("", "q", b"1").publish("", "q", b"2")
    peer.world.pass_time(10)
    first, second = peer.get("dead"), peer.get("dead")
    assert headers_of(first)["x-first-death-reason"] == "maxlen"
    assert headers_of(second)["x-first-death-reason"] == "expired"
    assert "original-expiration" not in headers_of(second)["x-death"][0]


def test_reject_publish_dlx_sends_what_it_refuses() -> None:
    peer = start(**with_dlx(x_max_length=1, x_overflow="reject-publish-dlx"))
    peer.call(methods.ConfirmSelect(), expect=methods.ConfirmSelectOk)
    peer.publish("", "q", b"1").publish("", "q", b"2")
    assert peer.heard() == [methods.BasicAck(1, False), methods.BasicNack(2, False, False)]
    dead = peer.get("dead")
    assert dead is not None
    assert dead.body == b"2"
    assert headers_of(dead)["x-first-death-reason"] == "maxlen"


def test_without_a_key_of_its_own_a_letter_keeps_the_messages() -> None:
    peer = World().peer()
    peer.call(methods.ExchangeDeclare("dlx", "topic"), expect=methods.ExchangeDeclareOk)
    peer.declare("dead")
    peer.call(methods.QueueBind("dead", "dlx", "q.#"), expect=methods.QueueBindOk)
    peer.declare("q.a", arguments=with_dlx("dlx", None))
    peer.publish("", "q.a")
    reject(peer, "q.a")
    dead = peer.get("dead")
    assert dead is not None
    assert (dead.method.exchange, dead.method.routing_key) == ("dlx", "q.a")  # type: ignore[attr-defined]


def test_dead_letters_without_a_queue_are_dropped() -> None:
    peer = start(**with_dlx("missing"))
    peer.publish("", "q")
    reject(peer)
    peer.call(methods.ExchangeDeclare("missing", "direct"), expect=methods.ExchangeDeclareOk)
    peer.publish("", "q")
    reject(peer)
    assert peer.world.broker.engine.held_messages == 0
    # Without a dead-letter exchange nothing is kept, either.
    peer.declare("plain")
    peer.publish("", "plain")
    reject(peer, "plain")
    assert peer.world.broker.engine.held_messages == 0


@pytest.mark.parametrize("headers", [None, {"mine": {"deep": [1]}}])
def test_deaths_are_counted_for_each_queue_and_reason(headers: dict[str, Any] | None) -> None:
    peer = World().peer()
    peer.declare("work", arguments=with_dlx("", "wait"))
    peer.declare("wait", arguments=with_dlx("", "work", x_message_ttl=10))
    peer.publish("", "work", b"again", Properties(headers=headers))
    for turn in range(1, 4):
        reject(peer, "work")
        peer.world.pass_time(5_000)
        got = peer.get("work", no_ack=False)
        deaths = headers_of(got)["x-death"]
        assert [(death["queue"], death["reason"], death["count"]) for death in deaths] == [
            ("wait", "expired", turn),
            ("work", "rejected", turn),
        ]
        # The time is that of the first death of its kind.
        assert [death["time"] for death in deaths] == [NOW_S, NOW_S]
        assert headers_of(got)["x-first-death-reason"] == "rejected"
        assert headers_of(got)["x-last-death-reason"] == "expired"
        assert headers_of(got).get("mine") == (headers or {}).get("mine")
        peer.send(methods.BasicNack(0, True, True))


def test_a_message_does_not_go_round_by_itself() -> None:
    peer = World().peer()
    peer.declare("a", arguments=with_dlx("", "b", x_message_ttl=10))
    peer.declare("b", arguments=with_dlx("", "a", x_message_ttl=10))
    peer.publish("", "a")
    peer.world.pass_time(1000)
    assert (peer.counts("a"), peer.counts("b")) == ((0, 0), (0, 0))
    peer.declare("self", arguments=with_dlx("", "self", x_max_length=0))
    peer.publish("", "self")
    assert peer.counts("self") == (0, 0)


def test_rejecting_lets_a_message_go_round() -> None:
    peer = World().peer()
    peer.declare("q", arguments=with_dlx("", "q"))
    peer.publish("", "q")
    for _ in range(3):
        reject(peer)
    got = peer.get("q")
    assert headers_of(got)["x-death"][0]["count"] == 3


def test_copies_go_where_the_message_went() -> None:
    peer = World().peer()
    peer.call(methods.ExchangeDeclare("dlx", "direct"), expect=methods.ExchangeDeclareOk)
    for name in ("dead", "copy"):
        peer.declare(name)
    peer.call(methods.QueueBind("dead", "dlx", "q"), expect=methods.QueueBindOk)
    peer.call(methods.QueueBind("copy", "dlx", "cc"), expect=methods.QueueBindOk)
    peer.declare("q", arguments=with_dlx("dlx", None))
    peer.publish("", "q", b"", Properties(headers={"CC": ["cc"]}))
    reject(peer)
    for name in ("dead", "copy"):
        headers = headers_of(peer.get(name))
        assert headers["x-death"][0]["routing-keys"] == ["q", "cc"]
        assert headers["CC"] == ["cc"]


def test_a_key_of_the_queues_own_takes_the_copies_away() -> None:
    peer = start()
    peer.publish("", "q", b"", Properties(headers={"CC": ["cc"], "mine": 1}))
    reject(peer)
    headers = headers_of(peer.get("dead"))
    assert headers["x-death"][0]["routing-keys"] == ["q", "cc"]
    assert "CC" not in headers
    assert headers["mine"] == 1


@pytest.mark.parametrize(
    "nonsense", [5, "text", [1, "a", None], [{"queue": 1}], [{"queue": "q", "reason": "r", "count": -1}], {}]
)
def test_a_malformed_x_death_of_a_client_is_replaced(nonsense: Any) -> None:
    peer = start()
    peer.publish("", "q", b"", Properties(headers={"x-death": nonsense, "x-first-death-queue": 5, "a": 1}))
    reject(peer)
    headers = headers_of(peer.get("dead"))
    assert [death["queue"] for death in headers["x-death"]] == ["q"]
    assert (headers["x-first-death-queue"], headers["a"]) == ("q", 1)


def test_a_string_that_looks_like_a_record_is_left_alone() -> None:
    peer = World().peer()
    peer.declare("q", arguments=with_dlx("", "q"))
    peer.publish("", "q")
    reject(peer)
    own = headers_of(peer.get("q"))
    twin = encode_table(own)[4:].decode("latin-1")
    for headers, count in (({"z": twin, **own}, 2), ({**own, "z": twin}, 1)):
        peer.publish("", "q", b"", Properties(headers=headers))
        reject(peer)
        found = headers_of(peer.get("q"))
        assert (found["z"], found["x-death"][0]["count"]) == (twin, count)


def test_records_that_a_client_made_up_are_not_counted_on() -> None:
    peer = start()
    record = {"queue": "q", "reason": "rejected", "count": 7, "exchange": "", "routing-keys": ["q"]}
    peer.publish("", "q", b"", Properties(headers={"own": 1, "x-death": [record]}))
    reject(peer)
    headers = headers_of(peer.get("dead"))
    assert [death["count"] for death in headers["x-death"]] == [1]
    assert headers["own"] == 1


def test_records_are_believed_after_they_were_forgotten() -> None:
    peer = World().peer()
    peer.declare("q", arguments=with_dlx("", "q"))
    peer.publish("", "q", b"", Properties(headers={"mine": 1}))
    for _ in range(3):
        reject(peer)
        peer.world.broker.deaths = DeathRegister()
    assert headers_of(peer.get("q"))["x-death"][0]["count"] == 3


def test_many_dead_letters_are_routed_in_several_rounds() -> None:
    peer = World().peer()
    depth = 40
    peer.declare("q0")
    for number in range(1, depth):
        peer.declare(f"q{number}", arguments=with_dlx("", f"q{number - 1}", x_max_length=0))
    peer.publish("", f"q{depth - 1}", b"falls through")
    got = peer.get("q0")
    assert len(headers_of(got)["x-death"]) == depth - 1


def test_one_entry_of_the_log_holds_leaving_and_arrival() -> None:
    world = World()
    peer = world.peer()
    peer.declare("dead", durable=True)
    peer.declare("q", durable=True, arguments=with_dlx())
    peer.publish("", "q", b"kept", Properties(delivery_mode=2))
    before = len(world.entries)
    reject(peer)
    assert len(world.entries) == before + 1
    queues = world.replayed().broker.state.vhosts["/"].queues
    assert (queues["q"].kernel.ready_count, queues["dead"].kernel.ready_count) == (0, 1)


def test_routing_keys_may_be_any_octets() -> None:
    peer = World().peer()
    peer.declare("q", arguments=with_dlx("", "q"))
    peer.call(methods.QueueBind("q", "amq.fanout"), expect=methods.QueueBindOk)
    peer.publish("amq.fanout", "\udcff")
    for count in (1, 2, 3):
        reject(peer)
        got = peer.get("q", no_ack=False)
        first, *_ = headers_of(got)["x-death"]
        assert (first["count"], first["routing-keys"]) == (count, [OctetString(b"\xff")])
        # As a client would that does not know of dead letters.
        assert got is not None
        peer.send(methods.BasicNack(0, True, True))
