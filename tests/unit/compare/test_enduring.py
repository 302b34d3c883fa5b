"""The publisher that measures pauses finds whoever serves, and gives up no message."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing

import pytest

from pandomq.bench.run import show_nothing
from tests.unit.bench.stand_in import CONFIRM, NACK, REFUSE, SILENT, StandIn
from tools.compare.clusters import limits
from tools.compare.clusters.enduring import EnduringPublisher
from tools.compare.clusters.filling import fill
from tools.compare.clusters.timeline import Timeline

PATIENCE_S = 20.0
Brokers = Callable[..., list[StandIn]]


@pytest.fixture
def stand_ins() -> Iterator[Brokers]:
    with ExitStack() as stack:
        yield lambda *moods: [stack.enter_context(closing(StandIn(mood))) for mood in moods]


@pytest.fixture
def publish() -> Iterator[Callable[[list[StandIn]], EnduringPublisher]]:
    with ExitStack() as stack:

        def begin(brokers: list[StandIn]) -> EnduringPublisher:
            urls = [broker.url for broker in brokers]
            publisher = EnduringPublisher(urls, "q", Timeline(limits.SILENCE_NS), urls[0])
            return stack.enter_context(closing(publisher))

        yield begin


Publish = Callable[[list[StandIn]], EnduringPublisher]


def go_on(publisher: EnduringPublisher, condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end
        publisher.turn()


def finish(publisher: EnduringPublisher) -> None:
    publisher.stop()
    go_on(publisher, lambda: publisher.settled)


def test_messages_are_numbered_and_all_confirmed(stand_ins: Brokers, publish: Publish) -> None:
    [broker] = stand_ins(CONFIRM)
    publisher = publish([broker])
    go_on(publisher, lambda: publisher.published >= 100)
    finish(publisher)
    assert publisher.confirmed == set(range(publisher.published))
    assert broker.numbers == list(range(publisher.published))
    assert publisher.timeline.confirmed == publisher.published
    assert publisher.resent == 0


def test_when_a_broker_dies_the_next_gets_the_unconfirmed_messages(stand_ins: Brokers, publish: Publish) -> None:
    first, second = stand_ins(CONFIRM, REFUSE)
    publisher = publish([first, second])
    go_on(publisher, lambda: len(publisher.confirmed) >= 20)
    first.mood = SILENT
    go_on(publisher, lambda: publisher.published >= len(publisher.confirmed) + 20)
    first.close()
    # A backup says no until it is elected; it is asked again and again.
    go_on(publisher, lambda: second.refused >= 2)
    second.mood = CONFIRM
    go_on(publisher, lambda: len(second.numbers) >= 100)
    finish(publisher)
    assert publisher.confirmed == set(range(publisher.published))
    assert set(first.numbers) | set(second.numbers) == publisher.confirmed
    assert second.numbers == sorted(second.numbers), "in order, the unconfirmed first"
    assert publisher.resent >= 20
    assert any("disconnected" in words for words in publisher.timeline.told_since(0))


def test_silence_is_enough_to_look_elsewhere(stand_ins: Brokers, publish: Publish) -> None:
    first, second = stand_ins(CONFIRM, CONFIRM)
    publisher = publish([first, second])
    go_on(publisher, lambda: len(publisher.confirmed) >= 20)
    first.mood = SILENT
    silent_ns = time.monotonic_ns()
    go_on(publisher, lambda: len(second.numbers) >= 50)
    finish(publisher)
    assert publisher.confirmed == set(range(publisher.published))
    pause = publisher.timeline.longest_pause(silent_ns, time.monotonic_ns())
    assert pause.over
    assert pause.seconds >= limits.SILENCE_NS / 1e9


def test_a_message_that_a_broker_refuses_is_published_again(stand_ins: Brokers, publish: Publish) -> None:
    [broker] = stand_ins(NACK)
    publisher = publish([broker])
    go_on(publisher, lambda: publisher.refused >= 10)
    assert not publisher.confirmed
    broker.mood = CONFIRM
    finish(publisher)
    assert publisher.confirmed == set(range(publisher.published))


def test_a_queue_is_filled_with_numbered_messages(stand_ins: Brokers) -> None:
    [broker] = stand_ins(CONFIRM)
    fill(broker.url, "q", range(100, 5100), show_nothing)
    assert broker.numbers == list(range(100, 5100))


def test_no_more_than_a_window_is_unconfirmed(
    stand_ins: Brokers, publish: Publish, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "FAULT_WINDOW", 10)
    [broker] = stand_ins(SILENT)
    publisher = publish([broker])
    go_on(publisher, lambda: len(broker.numbers) >= 10)
    for _ in range(20):
        publisher.turn()
    assert publisher.published == 10
