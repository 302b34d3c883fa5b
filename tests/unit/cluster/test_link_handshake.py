"""How two brokers come to trust each other, or do not, and what each of them hears."""

from __future__ import annotations

import pytest

from pandomq.cluster.acceptance import Acceptance, NotAccepted
from pandomq.cluster.hello import Proven, Welcome, decode_answer, decode_hello, encode, objection
from pandomq.cluster.introduction import IntroductionStage
from pandomq.cluster.limits import HELLO_BYTES_MAX
from pandomq.cluster.peer_messages import CHANNEL, PeerMessageKind, pack
from pandomq.cluster.proof import Side, is_proven, prove
from pandomq.kernel import PublishRun
from pandomq.wire.offer import Offer
from tests.unit.cluster.meeting import KEY, Meeting, hello


def test_brokers_with_one_key_are_linked_and_know_each_other() -> None:
    meeting = Meeting(hello("n1", expected="n2", http="h1:1"), hello("n2", amqp="h2:2")).run()
    assert meeting.dialer.stage is IntroductionStage.OPEN
    assert meeting.accepted is not None and (meeting.accepted.name, meeting.accepted.http) == ("n1", "h1:1")
    assert meeting.dialer.theirs is not None and meeting.dialer.theirs.amqp == "h2:2"


@pytest.mark.parametrize("size", [1, 1000, 131_064, 131_065, 3_000_000])
def test_packed_bytes_arrive_as_one_message(size: int) -> None:
    meeting = Meeting(hello("n1"), hello("n2")).run()
    body = bytes(index % 251 for index in range(size))
    for data in pack(PeerMessageKind.REPLICA, body):
        meeting.heard(bytes(data))
    (run,) = meeting.inputs
    assert isinstance(run, PublishRun) and len(run) == 1
    channel, message, _ = run[0]
    assert (channel, message.exchange, message.routing_key) == (CHANNEL, "", "replica")
    assert message.body == body


def test_a_wrong_key_is_noticed_by_the_dialing_side_and_both_report_it() -> None:
    meeting = Meeting(hello("n1"), hello("n2"), dialed_key=b"another key").run()
    assert meeting.refused is not None and meeting.refused.reason == "n1 and n2 have different cluster keys"
    assert meeting.not_accepted is not None and meeting.not_accepted.reason == meeting.refused.reason
    assert meeting.accepted is None and meeting.dialer.theirs is None


def _challenged(greeting: bytes) -> tuple[Acceptance, bytes]:
    """An accepting end that was greeted so, and its hello."""
    acceptance = Acceptance(KEY, hello("n2"))
    welcome = decode_answer(acceptance.greet(greeting))
    assert isinstance(welcome, Welcome)
    return acceptance, welcome.hello


def test_a_broker_that_ignores_proofs_and_has_another_key_is_not_accepted() -> None:
    greeting = encode(hello("n1"))
    acceptance, dialed = _challenged(greeting)
    with pytest.raises(NotAccepted, match="n1 has not proven that it knows the key of this cluster"):
        acceptance.accept(encode(Proven(prove(b"another key", Side.DIALING, greeting, dialed))))


def test_a_proof_cannot_be_used_again() -> None:
    greeting = encode(hello("n1"))
    first, dialed = _challenged(greeting)
    overheard = encode(Proven(prove(KEY, Side.DIALING, greeting, dialed)))
    assert first.accept(overheard).name == "n1"
    second, _ = _challenged(greeting)
    with pytest.raises(NotAccepted):
        second.accept(overheard)


def test_a_proof_cannot_be_sent_back_to_its_maker() -> None:
    greeting = encode(hello("n1"))
    acceptance = Acceptance(KEY, hello("n2"))
    welcome = decode_answer(acceptance.greet(greeting))
    assert isinstance(welcome, Welcome)
    with pytest.raises(NotAccepted):
        acceptance.accept(encode(Proven(welcome.proof)))


@pytest.mark.parametrize("data", [b"", b"garbage", b"\xc1" * 100, b"\x90"])
def test_a_malformed_hello_is_refused_without_an_answer(data: bytes) -> None:
    with pytest.raises(NotAccepted, match="the peer's greeting is malformed") as refused:
        Acceptance(KEY, hello("n2")).greet(data)
    assert refused.value.answer is None


def test_a_hello_that_is_too_long_is_not_read() -> None:
    with pytest.raises(NotAccepted, match="too long"):
        Acceptance(KEY, hello("n2")).greet(b"\x90" * (HELLO_BYTES_MAX + 1))


@pytest.mark.parametrize("data", [b"", b"garbage", encode(Welcome(b"", b"")), encode(hello("n1"))])
def test_a_malformed_proof_is_refused(data: bytes) -> None:
    acceptance, _ = _challenged(encode(hello("n1")))
    with pytest.raises(NotAccepted):
        acceptance.accept(data)


@pytest.mark.parametrize(
    ("dialing", "dialed", "reason"),
    [
        ({"cluster_id": "c2"}, {}, "n1 belongs to cluster c2, n2 to cluster c1"),
        ({"oldest": 3, "newest": 4}, {}, "n1 supports versions 3 to 4 of the link protocol, n2 supports 1 to 1"),
        ({}, {"oldest": 3, "newest": 4}, "n1 supports versions 1 to 1 of the link protocol, n2 supports 3 to 4"),
        (
            {"life": "x", "expected": "n2"},
            {"life": "x"},
            "n1 connected to itself: its own address is configured for n2",
        ),
        ({"expected": "n3"}, {}, "n1 connected to n3, but the broker at that address is n2"),
    ],
)
def test_brokers_that_do_not_belong_together_get_the_same_reason_on_both_sides(
    dialing: dict[str, object], dialed: dict[str, object], reason: str
) -> None:
    meeting = Meeting(hello("n1", **dialing), hello("n2", **dialed)).run()
    assert meeting.refused is not None and meeting.refused.reason == reason
    assert meeting.not_accepted is not None and meeting.not_accepted.reason == reason


def test_two_of_one_name_are_not_linked() -> None:
    meeting = Meeting(hello("n1", life="a"), hello("n1", life="b")).run()
    assert meeting.refused is not None and meeting.refused.reason == "both brokers are named n1: rename one of them"


def test_a_store_without_a_cluster_may_link_with_any() -> None:
    assert Meeting(hello("n1", cluster_id=""), hello("n2")).run().dialer.stage is IntroductionStage.OPEN
    assert Meeting(hello("n1"), hello("n2", cluster_id="")).run().dialer.stage is IntroductionStage.OPEN


def test_versions_that_overlap_are_enough() -> None:
    assert (
        Meeting(hello("n1", oldest=1, newest=2), hello("n2", oldest=2, newest=3)).run().dialer.stage
        is IntroductionStage.OPEN
    )


def test_a_broker_that_accepts_no_links_refuses_them_with_a_reason() -> None:
    meeting = Meeting(hello("n1"), hello("n2"), offer=Offer(version="test")).run()
    assert meeting.refused is not None and "accepts no brokers at this address" in meeting.refused.reason


def test_every_octet_of_both_hellos_is_covered_by_the_proofs() -> None:
    one, other = hello("n1"), hello("n2")
    greeting = encode(one)
    welcome = decode_answer(Acceptance(KEY, other).greet(greeting))
    assert isinstance(welcome, Welcome) and decode_hello(welcome.hello) == other
    assert is_proven(welcome.proof, KEY, Side.DIALED, greeting, welcome.hello)
    for place in range(len(greeting)):
        changed = greeting[:place] + bytes((greeting[place] ^ 1,)) + greeting[place + 1 :]
        assert not is_proven(welcome.proof, KEY, Side.DIALED, changed, welcome.hello)
    assert not is_proven(welcome.proof, KEY, Side.DIALED, welcome.hello, greeting)


def test_a_broker_may_dial_itself_for_a_tunnel_and_for_nothing_else() -> None:
    own = {"life": "the same", "cluster_id": "c1"}
    assert objection(hello("n1", purpose="tunnel", user="u", **own), hello("n1", **own)) is None
    assert "connected to itself" in (objection(hello("n1", **own), hello("n1", **own)) or "")
    other = hello("n1", life="another", cluster_id="c1")
    assert "both brokers are named n1: rename one of them" in (
        objection(hello("n1", purpose="trunk", **own), other) or ""
    )


def test_a_link_for_an_unknown_purpose_is_refused() -> None:
    meeting = Meeting(hello("n1", purpose="balloon"), hello("n2")).run()
    assert meeting.accepted is None
    assert meeting.refused is not None and "balloon" in meeting.refused.reason
