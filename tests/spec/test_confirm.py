"""confirm.select: every publish is answered once, nacked when a queue refuses it, after its return."""

from __future__ import annotations

import pytest

from tests.support.client import Channel


def confirmed_tags(channel: Channel, count: int) -> dict[int, str]:
    """Reads confirms until `count` publishes, numbered from 1, are answered; returns the answer to each."""
    answers: dict[int, str] = {}
    while len(answers) < count:
        method = channel.receive()
        assert method.name in ("basic.ack", "basic.nack"), method
        assert 1 <= method.delivery_tag <= count
        first = min(set(range(1, count + 1)) - set(answers)) if method.multiple else method.delivery_tag
        for tag in range(first, method.delivery_tag + 1):
            if not method.multiple:
                assert tag not in answers, "confirmed twice"
            answers.setdefault(tag, method.name)
    return answers


@pytest.fixture
def confirming(channel: Channel) -> Channel:
    channel.rpc("confirm.select")
    return channel


def test_select_is_answered_each_time(channel: Channel) -> None:
    channel.rpc("confirm.select")
    channel.rpc("confirm.select")


def test_select_without_waiting(channel: Channel, name: str) -> None:
    channel.send("confirm.select", no_wait=True)
    channel.publish("m", name)
    assert channel.confirmed().delivery_tag == 1


def test_numbers_begin_with_the_select(channel: Channel, name: str) -> None:
    channel.publish("before", name)
    channel.rpc("confirm.select")
    channel.publish("m", name)
    ack = channel.confirmed()
    assert (ack.delivery_tag, ack.multiple) == (1, False)
    channel.rpc("confirm.select")
    channel.publish("m", name)
    assert channel.confirmed().delivery_tag == 2


@pytest.mark.parametrize("durable", [False, True])
@pytest.mark.parametrize("mode", [1, 2])
def test_routed_messages(confirming: Channel, name: str, durable: bool, mode: int) -> None:
    queue = confirming.declare_queue(name, exclusive=False, durable=durable)
    for number in range(1, 4):
        confirming.publish(str(number), queue, delivery_mode=mode)
        assert confirming.confirmed().delivery_tag == number
    assert confirming.drain(queue) == [b"1", b"2", b"3"]


def test_messages_without_a_route_are_confirmed_too(confirming: Channel, name: str) -> None:
    confirming.publish("m", name)
    assert confirming.confirmed().delivery_tag == 1


def test_a_return_comes_before_its_confirm(confirming: Channel, name: str) -> None:
    confirming.publish("m", name, mandatory=True)
    assert confirming.expect("basic.return").body == b"m"
    assert confirming.confirmed().delivery_tag == 1


FAULTS: dict[str, tuple[str, dict[str, object]]] = {
    "an unknown tag": ("basic.ack", {"delivery_tag": 77}),
    "a second mode": ("tx.select", {}),
    "no queue": ("queue.bind", {"queue": "not there", "exchange": "amq.direct"}),
    "an unknown type": ("exchange.declare", {"exchange": "x", "type": "unknown"}),
    "a name that is reserved": ("queue.declare", {"queue": "amq.mine", "exclusive": True}),
}


@pytest.mark.proves("R38")
@pytest.mark.parametrize("how", ["asis", "whole"])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_return_comes_before_a_close_for_a_later_method(confirming: Channel, name: str, fault: str, how: str) -> None:
    """This also holds through a broker that finds the fault without a request to the root."""
    method, arguments = FAULTS[fault]
    with confirming.connection.in_segments(how):
        confirming.publish("m", name, mandatory=True)
        confirming.send(method, **arguments)
    assert confirming.expect("basic.return").body == b"m"
    last = confirming.receive()
    if last.name == "basic.ack":
        last = confirming.receive()
    assert last.name == "channel.close"


def test_returns_come_before_their_confirms_in_a_batch(confirming: Channel, name: str) -> None:
    queue = confirming.declare_queue()
    with confirming.connection.in_segments("whole"):
        for number in range(1, 41):
            confirming.publish(str(number), queue if number % 2 else name, mandatory=True)
    returned: set[int] = set()
    answered: set[int] = set()
    while len(answered) < 40:
        method = confirming.receive()
        if method.name == "basic.return":
            returned.add(int(method.body))
            continue
        tags = set(range(1, method.delivery_tag + 1)) if method.multiple else {method.delivery_tag}
        assert {tag for tag in tags if tag % 2 == 0} <= returned
        answered |= tags
    assert returned == set(range(2, 41, 2))


@pytest.mark.parametrize("how", ["whole", "bytewise"])
@pytest.mark.parametrize("durable", [False, True])
def test_a_burst_is_answered_whole(confirming: Channel, name: str, how: str, durable: bool) -> None:
    queue = confirming.declare_queue(name, exclusive=False, durable=durable)
    count = 1000 if how == "whole" else 30
    with confirming.connection.in_segments(how):
        for number in range(count):
            confirming.publish(str(number), queue, delivery_mode=2)
    assert set(confirmed_tags(confirming, count).values()) == {"basic.ack"}
    confirming.expect_nothing()
    assert confirming.counts(queue) == (count, 0)


@pytest.mark.ours_only
def test_a_burst_is_confirmed_in_few_frames(confirming: Channel) -> None:
    queue = confirming.declare_queue()
    confirming.connection.frames_seen.clear()
    with confirming.connection.in_segments("whole"):
        for _ in range(1000):
            confirming.publish("m", queue)
    confirmed_tags(confirming, 1000)
    assert len(confirming.connection.frames_seen) < 100


def test_other_channels_are_not_confirmed(confirming: Channel, name: str) -> None:
    sibling = confirming.connection.channel()
    sibling.publish("m", name)
    sibling.expect_nothing()
    confirming.expect_nothing()


def test_each_channel_counts_for_itself(confirming: Channel, name: str) -> None:
    sibling = confirming.connection.channel()
    sibling.rpc("confirm.select")
    for channel in (confirming, sibling):
        for number in (1, 2):
            channel.publish("m", name)
            assert channel.confirmed().delivery_tag == number


def test_a_queue_that_refuses_makes_a_nack(confirming: Channel) -> None:
    queue = confirming.declare_queue(arguments={"x-max-length": 2, "x-overflow": "reject-publish"})
    for number in range(4):
        confirming.publish(str(number), queue)
    answers = confirmed_tags(confirming, 4)
    assert [answers[tag] for tag in (1, 2, 3, 4)] == ["basic.ack", "basic.ack", "basic.nack", "basic.nack"]
    assert confirming.drain(queue) == [b"0", b"1"]


def test_one_refusing_queue_of_two_makes_a_nack(confirming: Channel, name: str) -> None:
    full = confirming.declare_queue(arguments={"x-max-length": 0, "x-overflow": "reject-publish"})
    ready = confirming.declare_queue()
    confirming.declare_exchange(name, "fanout")
    confirming.bind(full, name)
    confirming.bind(ready, name)
    confirming.publish("m", "", name)
    assert confirming.expect("basic.nack").delivery_tag == 1
    confirming.expect_nothing()


def test_an_exchange_that_is_missing_closes_the_channel(confirming: Channel, name: str) -> None:
    confirming.publish("m", "k", name)
    confirming.expect_close(404, f"NOT_FOUND - no exchange '{name}' in vhost '/'", "basic.publish")


def test_confirms_do_not_disturb_deliveries(confirming: Channel) -> None:
    queue = confirming.declare_queue()
    confirming.consume(queue)
    with confirming.connection.in_segments("whole"):
        for number in range(100):
            confirming.publish(str(number), queue)
    bodies: list[bytes] = []
    answered = 0
    while len(bodies) < 100 or answered < 100:
        method = confirming.receive()
        if method.name == "basic.deliver":
            bodies.append(method.body)
            confirming.send("basic.ack", delivery_tag=method.delivery_tag)
        else:
            answered = max(answered, method.delivery_tag)
    assert bodies == [str(number).encode() for number in range(100)]


def test_no_confirms_after_transactions(channel: Channel) -> None:
    channel.rpc("tx.select")
    text = "PRECONDITION_FAILED - cannot switch from tx to confirm mode"
    channel.refused(406, text, "confirm.select")


def test_a_reopened_channel_is_not_in_confirm_mode(confirming: Channel, name: str) -> None:
    confirming.rpc("channel.close", reply_code=200)
    confirming.rpc("channel.open")
    confirming.publish("m", name)
    confirming.expect_nothing()


def test_confirms_and_returns_keep_their_place_among_the_replies(confirming: Channel, name: str) -> None:
    """The first declare takes a while, as it has to be on disk; replies that need no disk do not overtake it."""
    for number in range(1, 21):
        confirming.send("queue.declare", queue=f"{name}.{number}", durable=True, auto_delete=True)
        confirming.publish("transient", "nowhere", mandatory=True)
        confirming.send("queue.delete", queue=f"{name}.{number}")
        heard = [confirming.receive() for _ in range(2)]
        assert [method.name for method in heard] == ["queue.declare-ok", "basic.return"]
        heard = [confirming.receive() for _ in range(2)]
        assert sorted(method.name for method in heard) == ["basic.ack", "queue.delete-ok"]


@pytest.mark.parametrize(
    ("asked", "arguments"),
    [
        ("confirm.select", {}),
        ("basic.qos", {"prefetch_count": 3}),
        ("channel.flow", {"active": True}),
        ("tx.select", {}),
        ("basic.recover", {"requeue": True}),
        ("queue.declare", {"queue": "", "exclusive": True}),
        ("queue.declare", {"queue": "own", "exclusive": True}),
        ("queue.purge", {"queue": "own"}),
        ("basic.get", {"queue": "own"}),
        ("basic.consume", {"queue": "own"}),
        ("queue.delete", {"queue": "own"}),
    ],
)
def test_a_return_comes_before_the_answer_to_a_request_after_the_publish(
    channel: Channel, name: str, asked: str, arguments: dict[str, object]
) -> None:
    """This also holds on a broker that does not need the root for the answer."""
    if arguments.get("queue") == "own":
        arguments = {**arguments, "queue": channel.declare_queue(f"{name}.own", exclusive=True)}
    for number in range(5 if asked in ("basic.qos", "channel.flow", "confirm.select") else 1):
        channel.publish(str(number), name, mandatory=True)
        channel.send(asked, **arguments)
        assert channel.receive().name == "basic.return"
        answer = channel.receive().name
        assert answer == ("basic.get-empty" if asked == "basic.get" else f"{asked}-ok") or answer == "basic.ack"
        if answer == "basic.ack":
            channel.expect(f"{asked}-ok")
        elif asked == "confirm.select" and number:
            channel.expect("basic.ack")


def test_a_return_comes_before_the_exception_for_a_method_after_the_publish(channel: Channel, name: str) -> None:
    channel.publish("m", name, mandatory=True)
    channel.send("basic.ack", delivery_tag=77)
    assert channel.expect("basic.return").body == b"m"
    assert channel.expect("channel.close").reply_code == 406
    channel.send("channel.close-ok")
