"""Requests over links: whole, in parts, given up, broken off, and refused."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pandomq.cluster.hello import OLDEST_VERSION, VERSION, Hello, decode_hello, objection
from pandomq.cluster.hello import encode as encode_hello
from pandomq.cluster.limits import PASSED_PART_BYTES_MAX, PASSED_UNDER_WAY_MAX
from pandomq.cluster.passed_requests import (
    BadPassedMessage,
    GiveUp,
    PassedAnswer,
    PassedRequest,
    RequestPart,
    decode,
    encode,
    encode_whole,
)
from pandomq.node.peers.requests import PeerRequests, Reply

LINKED = SimpleNamespace(linked=True, hello=SimpleNamespace(newest=2, version="2"))
DONE = PassedAnswer(204, (), b"")


class Pair:
    """Two brokers and the messages between them."""

    def __init__(self) -> None:
        self.under_way: list[tuple[str, str, bytes]] = []
        self.sizes: list[int] = []
        peer: Any = LINKED
        self.ends = {
            name: PeerRequests(lambda _: peer, lambda to, data, name=name: self._send(name, to, data))  # type: ignore[misc]
            for name in ("a", "b")
        }
        self.asked: list[tuple[str, PassedRequest, Reply]] = []
        self.ends["b"].on_request = lambda *asked: self.asked.append(asked)
        self.answers: list[PassedAnswer | str] = []

    def _send(self, sender: str, to: str, data: bytes) -> None:
        self.under_way.append((sender, to, data))
        self.sizes.append(len(data))

    def run(self) -> None:
        while self.under_way:
            sender, to, data = self.under_way.pop(0)
            self.ends[to].received(sender, data)

    def ask(self, body: bytes = b"") -> int:
        return self.ends["a"].ask("b", request(body), self.answers.append)


def request(body: bytes = b"") -> PassedRequest:
    return PassedRequest("PUT", b"/x", "ann", False, (("accept", "y"),), body)


@pytest.mark.parametrize("size", [0, 10, PASSED_PART_BYTES_MAX, 5 * PASSED_PART_BYTES_MAX + 1])
def test_a_request_is_answered_in_parts_that_delay_nothing_else(size: int) -> None:
    pair = Pair()
    pair.ask(b"q" * size)
    pair.run()
    [(sender, asked, reply)] = pair.asked
    assert (sender, asked) == ("a", request(b"q" * size))
    answer = PassedAnswer(200, (("content-type", "x"),), b"a" * size)
    reply(answer)
    assert len(pair.under_way) == 1, "the next part when it is asked for"
    pair.run()
    assert pair.answers == [answer]
    assert max(pair.sizes) <= PASSED_PART_BYTES_MAX + 64
    assert not pair.ends["a"]._asked and not pair.ends["b"]._served


def test_many_requests_at_once_get_their_own_answers() -> None:
    pair = Pair()
    for number in range(10):
        pair.ask(bytes([number]) * 3 * PASSED_PART_BYTES_MAX)
    pair.run()
    for _, asked, reply in reversed(pair.asked):
        reply(PassedAnswer(200, (), asked.body[:1]))
    pair.run()
    assert sorted(answer.body for answer in pair.answers if isinstance(answer, PassedAnswer)) == [
        bytes([number]) for number in range(10)
    ]


def test_a_lost_link_ends_the_requests_of_both_sides() -> None:
    pair = Pair()
    pair.ask()
    pair.run()
    [(_, _, reply)] = pair.asked
    pair.ends["a"].disconnected("b")
    pair.ends["b"].disconnected("a")
    assert pair.answers == ["the link to b was lost; it is not known whether the request was carried out"]
    reply(DONE)
    assert not pair.under_way


def test_a_reply_from_before_does_not_answer_a_later_request_of_the_same_number() -> None:
    pair = Pair()
    pair.ask()
    pair.run()
    for end, other in (("a", "b"), ("b", "a")):
        pair.ends[end].disconnected(other)
    pair.ends["a"]._last_number = 0
    pair.ask()
    pair.run()
    (_, _, stale), (_, _, reply) = pair.asked
    stale(PassedAnswer(500, (), b"stale"))
    reply(DONE)
    pair.run()
    assert pair.answers[1:] == [DONE]


def test_a_request_that_is_given_up_is_forgotten_at_both_ends() -> None:
    pair = Pair()
    number = pair.ask()
    pair.run()
    [(_, _, reply)] = pair.asked
    pair.ends["a"].give_up(number)
    pair.run()
    reply(DONE)
    pair.run()
    assert pair.answers == [] and not pair.ends["b"]._served


def test_an_answer_without_a_waiting_request_is_forgotten_by_its_sender() -> None:
    pair = Pair()
    pair.ask()
    pair.run()
    pair.ends["a"]._asked.clear()
    pair.asked[0][2](PassedAnswer(200, (), b"a" * 3 * PASSED_PART_BYTES_MAX))
    pair.run()
    assert not pair.ends["b"]._served


def test_a_broker_that_answers_no_requests_rejects_them_at_once() -> None:
    pair = Pair()
    pair.ends["b"].on_request = None
    pair.ask()
    pair.run()
    assert pair.answers == ["b rejected the request"]


def test_the_number_of_requests_under_way_for_one_broker_is_bounded() -> None:
    pair = Pair()
    for _ in range(PASSED_UNDER_WAY_MAX + 1):
        pair.ask()
    pair.run()
    assert len(pair.asked) == PASSED_UNDER_WAY_MAX and pair.answers == ["b rejected the request"]


def test_a_restart_of_the_state_ends_the_requests_under_way() -> None:
    pair = Pair()
    pair.ask()
    pair.ends["a"].close_all("a new root")
    assert len(pair.answers) == 1


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\x01nonsense",
        encode(RequestPart(1, True, 5, 10, b"x")),
        encode(RequestPart(1, True, 0, 1, b"xy")),
        encode(RequestPart(1, True, 0, 1, b"")),
        encode(RequestPart(1, True, 0, 3, b"\xc1\xc1\xc1")),
    ],
)
def test_a_message_that_cannot_be_read_ends_the_link(message: bytes) -> None:
    pair = Pair()
    pair.ask()
    with pytest.raises(BadPassedMessage):
        pair.ends["a"].received("b", message)


def test_another_version_is_passed_over() -> None:
    pair = Pair()
    pair.ends["a"].received("b", b"\x63whatever it means")
    assert decode(encode(GiveUp(1, by_asker=True))) == GiveUp(1, by_asker=True)
    assert encode_whole(DONE)


@pytest.mark.parametrize(
    ("peer", "reason"),
    [
        (None, "there is no link to it"),
        (SimpleNamespace(linked=False, hello=LINKED.hello), "there is no link to it"),
        (
            SimpleNamespace(linked=True, hello=SimpleNamespace(newest=1, version="0.1.0")),
            "its version 0.1.0 accepts no",
        ),
        (LINKED, None),
    ],
)
def test_only_linked_brokers_that_know_such_requests_are_asked(peer: Any, reason: str | None) -> None:
    objection = PeerRequests(lambda _: peer, lambda _name, _data: None).objection("b")
    assert objection is None if reason is None else reason in str(objection)


def test_brokers_of_the_version_before_are_linked_and_not_asked() -> None:
    """Its links would be closed by a message of a kind that it does not know."""
    before = Hello(oldest=1, newest=1, name="b", nonce=bytes(32), life="1", version="0.1.0")
    now = Hello(oldest=OLDEST_VERSION, newest=VERSION, name="a", nonce=bytes(32), life="2")
    assert objection(now, before) is None and objection(before, now) is None
    peer: Any = SimpleNamespace(linked=True, hello=decode_hello(encode_hello(before)))
    assert "accepts no requests over links" in str(PeerRequests(lambda _: peer, lambda _n, _d: None).objection("b"))
