"""Staged messages that no queue takes: refused when they are staged, or counted when they are published."""

from __future__ import annotations

import pytest

from pandomq import methods
from pandomq.broker.publishing.producer_views import ProducerViews
from pandomq.broker.staging import expansion
from pandomq.errors import ChannelFault
from pandomq.properties import Properties
from tests.unit.broker.conversation import World
from tests.unit.broker.staging_scene import COMMITTED, STAGED, Sink, frames, prepared

EVENTS = "events"
CC = Properties(delivery_mode=2, headers={"CC": ["e.x"]})


def bound(kind: str = "topic") -> tuple[World, Sink]:
    """An exchange whose binding takes the keys that begin with `e.`, or the headers with `kind: e`."""
    world, sink = prepared()
    declare(world, EVENTS, kind)
    bind(world, EVENTS, "e.#", {"kind": "e", "x-match": "all"} if kind == "headers" else {})
    return world, sink


def declare(world: World, name: str, kind: str, **arguments: object) -> None:
    given = {key.replace("_", "-"): value for key, value in arguments.items()}
    method = methods.ExchangeDeclare(name, kind, durable=True, arguments=given)
    world.peer().call(method, expect=methods.ExchangeDeclareOk)


def bind(world: World, exchange: str, key: str, arguments: dict[str, object] | None = None) -> None:
    world.peer().call(methods.QueueBind("q", exchange, key, arguments=arguments or {}), expect=methods.QueueBindOk)


def unroutable(world: World, batch: int = 0) -> int:
    return world.broker.staging.expansion.unroutable_of("/", "guest", "w", batch)


@pytest.mark.proves("S2")
def test_the_first_message_without_a_queue_refuses_the_part() -> None:
    _, sink = bound()
    sink.stage(frames("1", "2", exchange=EVENTS, key="e.x"), routed=True)
    wrong = frames("3", exchange=EVENTS, key="e.x") + frames("4", exchange=EVENTS, key="ee.x")
    with pytest.raises(ChannelFault, match=r"NO_ROUTE - no queue is bound for a message .* routing key 'ee.x'"):
        sink.stage(wrong, 1, routed=True)
    # Nothing of the part was kept: it may be staged again without that message.
    sink.stage(frames("3", exchange=EVENTS, key="e.x"), 1, routed=True)
    assert sink.heard() == [STAGED, STAGED]


def test_further_keys_and_alternates_are_ways_to_a_queue() -> None:
    world, sink = bound()
    sink.stage(frames("1", exchange=EVENTS, key="nowhere", properties=CC), routed=True)
    declare(world, "with", "direct", alternate_exchange="amq.fanout")
    with pytest.raises(ChannelFault, match="NO_ROUTE"):
        sink.stage(frames("2", exchange="with", key="any"), 1, routed=True)
    bind(world, "amq.fanout", "")
    sink.stage(frames("2", exchange="with", key="any"), 1, routed=True)
    assert sink.heard() == [STAGED, STAGED]


def test_messages_of_one_key_that_go_by_their_headers_are_judged_one_by_one() -> None:
    _, sink = bound("headers")
    kept, lost = (
        frames("1", exchange=EVENTS, properties=Properties(delivery_mode=2, headers={"kind": kind})) for kind in "ef"
    )
    sink.stage(kept, routed=True)
    with pytest.raises(ChannelFault, match="NO_ROUTE"):
        sink.stage(kept + lost, 1, routed=True)


@pytest.mark.proves("S2")
@pytest.mark.parametrize("change", ["unbound", "deleted"])
def test_messages_that_become_unroutable_after_staging_are_counted(change: str) -> None:
    world, sink = bound()
    sink.stage(frames("1", "2", exchange=EVENTS, key="e.x") + frames("3"), routed=True)
    sink.stage(frames("4", exchange=EVENTS, key="e.x"), 1, routed=True)
    if change == "unbound":
        world.peer().call(methods.QueueUnbind("q", EVENTS, "e.#"), expect=methods.QueueUnbindOk)
    else:
        world.peer().call(methods.ExchangeDelete(EVENTS), expect=methods.ExchangeDeleteOk)
    sink.commit((0, "a", 2))
    assert sink.heard() == [STAGED, STAGED, COMMITTED]
    assert unroutable(world) == 3
    # Not judged, and counted from the first: each batch by itself, and all of a query.
    sink.stage(frames("5", key="missing"), batch=1)
    sink.commit((0, "a", 1), batch=1)
    assert (unroutable(world), unroutable(world, 1)) == (0, 1)
    assert ProducerViews(world.broker).staged().unroutable_by_query == {("/", "w"): 4}


def test_counts_of_the_last_queries_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expansion, "STAGED_UNROUTABLE_QUERIES_MAX", 2)
    world, _ = prepared()
    for query in ("a", "b", "a", "c"):
        sink = Sink(world, query=query)
        batch = sink.last_batch() + 1
        sink.stage(frames("1", key="missing"), batch=batch)
        sink.commit((0, "a", 1), batch=batch)
    assert ProducerViews(world.broker).staged().unroutable_by_query == {("/", "a"): 2, ("/", "c"): 1}
    assert ProducerViews(world.broker).staged().unroutable == 4
