"""Asking a broker for a way to another one, and looking whether one is there."""

from __future__ import annotations

import pytest

from pandomq.cluster.acceptance import Acceptance, NotAccepted
from pandomq.cluster.hello import Hello, Objection, encode
from pandomq.cluster.introduction import IntroductionStage, LinkRefused
from pandomq.cluster.limits import DIAL_MS_MAX
from pandomq.cluster.passage import Knock, Passage, ask_for_passage
from pandomq.kernel import Scanner
from pandomq.wire.connection import Connection
from pandomq.wire.inputs import Login, Secured
from tests.unit.cluster.meeting import KEY, NOW_MS, OFFER, hello


class Dialed:
    """The broker that is asked, up to its answer."""

    def __init__(self, key: bytes = KEY) -> None:
        self.acceptance = Acceptance(key, hello("n3"))
        self.connection = Connection(OFFER, Scanner, NOW_MS)
        self.asked: Hello | None = None

    def hear(self, data: bytes) -> bytes:
        for item in self.connection.receive(data):
            if isinstance(item, Login):
                self.connection.challenge(self.acceptance.greet(item.password))
            elif isinstance(item, Secured):
                try:
                    self.asked = self.acceptance.accept(item.response)
                except NotAccepted:
                    self.connection.hang_up()
        return self.connection.data_to_send()


def talk(dialing: Passage | Knock, dialed: Dialed) -> bool:
    """Until the one that was dialed has to decide something, or the other has heard enough."""
    while said := dialing.data_to_send():
        answer = dialed.hear(said)
        if answer and dialing.receive(answer):
            return True
    return False


def passage(**said: object) -> Passage:
    return Passage(KEY, ask_for_passage(hello("n2", expected="n3", members=(("n1", "a"),), **said), "n1"), NOW_MS)


def test_a_passage_is_open_when_the_relaying_broker_accepts_it() -> None:
    dialing, dialed = passage(), Dialed()
    assert not talk(dialing, dialed)
    assert dialed.asked is not None
    assert (dialed.asked.purpose, dialed.asked.beyond, dialed.asked.members) == ("passage", "n1", ())
    dialed.connection.accept_login(OFFER)
    assert dialing.receive(dialed.connection.data_to_send() + b"from beyond")
    assert dialing.take_rest() == b"from beyond"
    assert not dialing.data_to_send(), "nothing more is for the one in between"


def test_the_reason_of_a_refusal_is_passed_on() -> None:
    dialing, dialed = passage(), Dialed()
    talk(dialing, dialed)
    dialed.connection.challenge(encode(Objection("this broker has no direct link to n1 either", lasting=False)))
    with pytest.raises(LinkRefused, match="this broker has no direct link to n1 either") as refused:
        dialing.receive(dialed.connection.data_to_send())
    assert not refused.value.lasting


def test_a_broker_with_another_key_is_asked_for_nothing() -> None:
    with pytest.raises(LinkRefused, match="different cluster keys"):
        talk(passage(), Dialed(b"another key"))


def test_a_passage_does_not_wait_for_ever() -> None:
    dialing, dialed = passage(), Dialed()
    talk(dialing, dialed)
    dialing.tick(NOW_MS + DIAL_MS_MAX - 1)
    with pytest.raises(LinkRefused, match="in time"):
        dialing.tick(NOW_MS + DIAL_MS_MAX)


def test_a_knock_learns_the_name_of_the_broker_and_proves_nothing() -> None:
    knock, dialed = Knock(KEY, hello("n2", expected="n3"), NOW_MS), Dialed()
    assert talk(knock, dialed)
    assert knock.stage is IntroductionStage.TUNING and dialed.asked is None


def test_a_knock_at_a_broker_with_another_key_is_refused() -> None:
    with pytest.raises(LinkRefused, match="different cluster keys"):
        talk(Knock(KEY, hello("n2"), NOW_MS), Dialed(b"another key"))
