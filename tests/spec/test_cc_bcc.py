"""CC and BCC: further routing keys in the headers; BCC is removed before delivery."""

from __future__ import annotations

import pytest

from tests.support.client import Channel


def queues(channel: Channel, count: int) -> list[str]:
    return [channel.declare_queue() for _ in range(count)]


def test_every_key_is_routed(channel: Channel) -> None:
    to, cc1, cc2, bcc, nobody = queues(channel, 5)
    channel.publish("m", to, headers={"CC": [cc1, cc2], "BCC": [bcc]})
    assert [channel.drain(queue) for queue in (to, cc1, cc2, bcc, nobody)] == [[b"m"]] * 4 + [[]]


def test_the_bcc_header_is_removed(channel: Channel) -> None:
    to, cc, bcc = queues(channel, 3)
    channel.publish("m", to, headers={"CC": [cc], "BCC": [bcc], "other": 1})
    for queue in (to, cc, bcc):
        found = channel.get(queue)
        assert found is not None
        assert found.headers == {"CC": [cc], "other": 1}
        assert found.routing_key == to


def test_one_queue_by_several_keys_gets_one_copy(channel: Channel) -> None:
    [queue] = queues(channel, 1)
    channel.publish("m", queue, headers={"CC": [queue, queue], "BCC": [queue]})
    assert channel.drain(queue) == [b"m"]


def test_with_a_topic_exchange(channel: Channel, name: str) -> None:
    channel.declare_exchange(name, "topic")
    one, two = queues(channel, 2)
    channel.bind(one, name, "a.*")
    channel.bind(two, name, "b.#")
    channel.publish("m", "nowhere", name, headers={"CC": ["a.x", "b.x.y"]})
    assert [channel.drain(one), channel.drain(two)] == [[b"m"], [b"m"]]


def test_no_return_if_one_key_has_a_route(channel: Channel) -> None:
    [queue] = queues(channel, 1)
    channel.publish("m", "nowhere", mandatory=True, headers={"BCC": [queue]})
    channel.expect_nothing()
    assert channel.drain(queue) == [b"m"]


@pytest.mark.parametrize("header", ["CC", "BCC"])
@pytest.mark.parametrize(("value", "kind"), [("text", "longstr"), (5, "signedint"), ({"a": 1}, "table")])
def test_a_header_that_is_no_list(channel: Channel, header: str, value: object, kind: str) -> None:
    channel.publish("m", "k", headers={header: value})
    text = f'PRECONDITION_FAILED - invalid message: {{unacceptable_type_in_header,"{header}",{kind}}}'
    channel.expect_close(406, text, "basic.publish")


@pytest.mark.parametrize("header", ["CC", "BCC"])
def test_members_that_are_no_keys_are_passed_over(channel: Channel, header: str) -> None:
    to, more = queues(channel, 2)
    channel.publish("m", to, headers={header: [1, more, None]})
    assert [channel.drain(to), channel.drain(more)] == [[b"m"], [b"m"]]


def test_empty_lists(channel: Channel) -> None:
    [queue] = queues(channel, 1)
    channel.publish("m", queue, headers={"CC": [], "BCC": []})
    found = channel.get(queue)
    assert found is not None
    assert found.headers == {"CC": []}


def test_dead_letters_list_all_keys_but_bcc(channel: Channel) -> None:
    grave = channel.declare_queue()
    cc = channel.declare_queue()
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": grave, "x-max-length": 0}
    queue = channel.declare_queue(arguments=arguments)
    channel.consume(grave, no_ack=True)
    channel.publish("m", queue, headers={"CC": [cc]})
    found = channel.delivery()
    assert found.headers["x-death"][0]["routing-keys"] == [queue, cc]
    assert channel.drain(cc) == [b"m"], "a dead letter with a key of its own is not sent to the CC keys again"
