"""Messages that wait: taken when their time has come, in its order, and routed as the inner type says."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandomq import kernel
from pandomq.broker.exchanges.exchange import Exchange
from pandomq.broker.exchanges.message_headers import MessageHeaders
from pandomq.broker.publishing.delayed import DUE_MESSAGES_MAX, DelayedMessages, delay_ms, enqueue
from pandomq.broker.publishing.routing import Router
from pandomq.fieldtable import Float32, Int8, Int32, OctetString, Timestamp
from pandomq.limits import DELAY_MS_MAX
from pandomq.properties import Properties, decode_header, encode_header
from tests.unit.broker.routing.topology import Mailbox, SilentHooks, binding, exchange


def message(body: bytes, headers: dict[str, Any] | None = None, **others: Any) -> kernel.Message:
    header = encode_header(len(body), Properties(headers=headers, **others))
    return kernel.Message(kernel.routing_of("d", "k"), header, body)


def store() -> tuple[kernel.Engine, DelayedMessages]:
    engine = kernel.Engine(SilentHooks())
    return engine, DelayedMessages("d", kernel.Queue(engine, None, 9, True))


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(1, 50)), max_size=30), st.lists(st.integers(0, 110)))
def test_due_in_order_of_time(delays: list[tuple[int, int]], looks: list[int]) -> None:
    engine, waiting = store()
    due: dict[bytes, int] = {}
    for number, (now_ms, delay) in enumerate(sorted(delays)):
        body = str(number).encode()
        due[body] = now_ms + delay
        waiting.delay(engine, None, message(body, {"x-delay": delay}), now_ms)
    taken: list[bytes] = []
    for now_ms in [*sorted(looks), 1000]:
        found = [entry.body for entry in waiting.due(now_ms)]
        assert all(due[body] <= now_ms for body in found)
        taken += found
        left = sorted(set(due) - set(taken))
        assert waiting.next_due_ms == min((due[body] for body in left), default=kernel.NEVER_MS)
        assert waiting.next_due_ms > now_ms
    # Of equal times the first published comes first.
    if not looks:
        assert taken == sorted(due, key=lambda body: (due[body], int(body)))
    assert sorted(taken) == sorted(due)


def test_header_is_negated_and_the_rest_stays() -> None:
    engine, waiting = store()
    properties: dict[str, Any] = {"delivery_mode": 2, "expiration": "700", "message_id": "m"}
    waiting.delay(engine, None, message(b"body", {"x-delay": Int32(5), "o": "p"}, **properties), 0)
    (released,) = waiting.due(5)
    assert decode_header(released.header) == (4, Properties(headers={"x-delay": -5, "o": "p"}, **properties))
    assert (released.exchange, released.routing_key, released.body) == ("d", "k", b"body")
    assert delay_ms(MessageHeaders(released)) == 0


def test_time_to_live_begins_when_the_delay_ends() -> None:
    engine, waiting = store()
    waiting.delay(engine, None, message(b"", {"x-delay": 1000}, expiration="1"), 0)
    assert waiting.kernel.next_deadline_ms == kernel.NEVER_MS
    (released,) = waiting.due(1000)
    assert released.expiration_ms == 1


def test_restored_messages_wait_for_the_same_time() -> None:
    engine, waiting = store()
    kept = message(b"kept", {"x-delay": 100})
    engine.restore(kept, [(waiting.kernel, 7, 1)], 50)
    waiting.restored(7, kept, 50)
    waiting.restored(8, message(b"dropped since", {"x-delay": 1}), 50)
    assert waiting.due(149) == []
    assert [entry.body for entry in waiting.due(150)] == [b"kept"]


def test_a_broker_that_only_replays_forgets_what_was_dropped() -> None:
    engine, waiting = store()
    delayed = message(b"", {"x-delay": 5})
    for sequence in range(1, 5 * DUE_MESSAGES_MAX):
        engine.restore(delayed, [(waiting.kernel, sequence, 1)], sequence)
        waiting.restored(sequence, delayed, sequence)
        if sequence > 3:
            waiting.kernel.drop(sequence - 3, 1)
    assert len(waiting._heap) <= 2 * 3 + DUE_MESSAGES_MAX + 1
    assert len(waiting.due(10**6)) == 3


def test_many_due_messages_are_released_in_portions() -> None:
    engine, waiting = store()
    for _ in range(DUE_MESSAGES_MAX + 1):
        waiting.delay(engine, None, message(b"", {"x-delay": 1}), 0)
    assert len(waiting.due(1)) == DUE_MESSAGES_MAX
    assert waiting.next_due_ms == 1
    assert len(waiting.due(1)) == 1
    assert waiting.next_due_ms == kernel.NEVER_MS


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (5, 5),
        (Int8(5), 5),
        ("5", 5),
        (OctetString(b"5"), 5),
        (5.9, 5),
        (Float32(1.5), 1),
        (DELAY_MS_MAX, DELAY_MS_MAX),
        (0, 0),
        (-5, 0),
        ("-5", 0),
        ("soon", 0),
        ("", 0),
        ("²", 0),
        (DELAY_MS_MAX + 1, 0),
        (str(DELAY_MS_MAX + 1), 0),
        (float("inf"), 0),
        (float("nan"), 0),
        (True, 0),
        (None, 0),
        (Timestamp(5), 0),
        ([5], 0),
    ],
)
def test_the_delay_is_read_from_its_header(value: Any, expected: int) -> None:
    assert delay_ms({"x-delay": value}) == expected


def test_no_header_no_delay() -> None:
    assert delay_ms({}) == 0


class Delaying:
    """A router with a delayed exchange of an inner type, and three queues."""

    def __init__(self, inner: str) -> None:
        self.engine = kernel.Engine(SilentHooks())
        self.queues = {name: Mailbox(name, self.engine) for name in ("a", "b", "c")}
        self.router = Router(self.queues.get)
        self.exchange: Exchange = exchange("d", "x-delayed-message", arguments={"x-delayed-type": inner})
        self.waiting = DelayedMessages("d", kernel.Queue(self.engine, self.exchange, 9, True))
        self.exchange.waiting = self.waiting
        self.router.add(self.exchange)

    def publish(self, source: Exchange, entry: kernel.Message, now_ms: int) -> list[str]:
        found = self.router.route(source, [entry.routing_key], MessageHeaders(entry))
        enqueue(self.engine, None, entry, found, 0, now_ms)
        return [destination.name for destination in found]

    def tick(self, now_ms: int) -> list[list[str]]:
        return [self.publish(self.exchange, entry, now_ms) for entry in self.waiting.due(now_ms)]


def test_routed_by_the_inner_type_when_due() -> None:
    world = Delaying("topic")
    for name, pattern in (("a", "*"), ("b", "x.*"), ("c", "#")):
        world.router.bind(binding(world.exchange, world.queues[name], pattern))
    assert world.router.plan(world.exchange, "k") is None
    assert world.publish(world.exchange, message(b"now"), 0) == ["a", "c"]
    assert world.publish(world.exchange, message(b"later", {"x-delay": 10}), 0) == ["d"]
    assert world.queues["a"].kernel.ready_count == 1
    assert world.waiting.kernel.ready_count == 1
    assert world.tick(9) == []
    assert world.tick(10) == [["a", "c"]]
    assert world.queues["a"].kernel.ready_count == 2
    assert world.waiting.kernel.ready_count == 0


def test_messages_that_come_through_another_exchange_are_delayed_too() -> None:
    world = Delaying("direct")
    first = world.router.exchanges["amq.fanout"]
    world.router.bind(binding(first, world.exchange))
    world.router.bind(binding(first, world.queues["b"]))
    world.router.bind(binding(world.exchange, world.queues["a"], "k"))
    assert sorted(world.publish(first, message(b"m", {"x-delay": 10}), 0)) == ["b", "d"]
    assert world.queues["b"].kernel.ready_count == 1
    assert world.tick(10) == [["a"]]


def test_binding_rules_are_those_of_the_inner_type() -> None:
    world = Delaying("x-consistent-hash")
    world.exchange.check_binding("1", {})
    with pytest.raises(Exception, match="must be an integer"):
        world.exchange.check_binding("k", {})
    bound = binding(world.exchange, world.queues["a"], "1")
    assert world.router.bind(bound)
    assert not world.router.bind(bound)
    assert world.publish(world.exchange, message(b""), 0) == ["a"]
    assert world.router.unbind(bound)
    assert world.publish(world.exchange, message(b""), 0) == []
