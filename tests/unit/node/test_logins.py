"""Logins: the first user, wrong passwords, remembered ones, certificates."""

from base64 import b64encode
from random import Random

import pytest

from pandomq.broker.broker import Broker
from pandomq.broker.commands import DeleteUser, PutUser
from pandomq.broker.limits import BrokerLimits
from pandomq.broker.passwords import SCRYPT, hash_password
from pandomq.errors import Fault
from pandomq.ids import UserName
from pandomq.node.logins import Logins, Question, Refusal, Secrets, Welcome
from pandomq.node.settings import NodeSettings
from pandomq.wire.codec import encode_frame, encode_method
from pandomq.wire.inputs import Login


@pytest.fixture
def broker() -> Broker:
    return Broker(
        node_name="n1",
        encode=encode_frame,
        encode_payload=encode_method,
        random=Random(1),
        limits=BrokerLimits(),
    )


@pytest.fixture
def logins(broker: Broker) -> Logins:
    logins = Logins(NodeSettings(), broker, Secrets(b"key", b"salt"))
    logins.make_first_user(0)
    return logins


def plain(user: str, password: bytes) -> Login:
    return Login("PLAIN", UserName(user), password, {})


def change(broker: Broker, command: PutUser | DeleteUser) -> None:
    faults: list[Fault | None] = []
    broker.administration.submit(command, faults.append, 0)
    outcome = broker.handle((), 0)
    assert outcome.proposal is not None
    broker.sealed(1)
    broker.committed(1)
    assert faults == [None]


def test_the_first_user_is_known_at_once(logins: Logins) -> None:
    assert logins.ask(plain("guest", b"guest"), None, from_loopback=True) == Welcome("guest")
    assert logins.tags("guest") == ("administrator",)


def test_guest_stays_at_home(logins: Logins) -> None:
    answer = logins.ask(plain("guest", b"guest"), None, from_loopback=False)
    assert isinstance(answer, Refusal)
    assert "loopback" in answer.reason


@pytest.mark.parametrize("user", ["guest", "nobody"])
def test_a_wrong_password_is_a_question_whoever_asks(logins: Logins, user: str) -> None:
    question = logins.ask(plain(user, b"wrong"), None, from_loopback=True)
    assert isinstance(question, Question)
    assert not question.fits()
    answer = logins.learn(question, fits=False)
    assert isinstance(answer, Refusal)
    assert "wrong" not in answer.reason.replace("wrong password", ""), "the password is not in the log"


def test_nobody_does_not_come_in_with_the_first_users_password(logins: Logins) -> None:
    question = logins.ask(plain("nobody", b"guest"), None, from_loopback=True)
    assert isinstance(question, Question)
    assert not question.fits()


def test_a_verified_password_is_remembered_until_it_changes(broker: Broker, logins: Logins) -> None:
    change(broker, PutUser("ann", hash_password(b"secret", b"salt"), SCRYPT, ()))
    question = logins.ask(plain("ann", b"secret"), None, from_loopback=False)
    assert isinstance(question, Question)
    assert logins.learn(question, fits=question.fits()) == Welcome("ann")
    assert logins.ask(plain("ann", b"secret"), None, from_loopback=False) == Welcome("ann")
    change(broker, PutUser("ann", hash_password(b"other", b"salt"), SCRYPT, ()))
    assert isinstance(logins.ask(plain("ann", b"secret"), None, from_loopback=False), Question)


def test_a_user_who_went_while_the_answer_was_looked_for_stays_out(broker: Broker, logins: Logins) -> None:
    change(broker, PutUser("ann", hash_password(b"secret", b"salt"), SCRYPT, ()))
    question = logins.ask(plain("ann", b"secret"), None, from_loopback=False)
    assert isinstance(question, Question)
    change(broker, DeleteUser("ann"))
    assert isinstance(logins.learn(question, fits=True), Refusal)


def test_a_certificate_names_a_user(logins: Logins) -> None:
    external = Login("EXTERNAL", UserName(""), b"", {})
    assert logins.ask(external, "guest", from_loopback=True) == Welcome("guest")
    assert isinstance(logins.ask(external, "guest", from_loopback=False), Refusal), "guest stays at home"
    assert isinstance(logins.ask(external, "stranger", from_loopback=False), Refusal)
    assert isinstance(logins.ask(external, None, from_loopback=False), Refusal)


def test_the_key_is_not_in_any_hash(broker: Broker) -> None:
    secrets = Secrets.draw(Random(2))
    Logins(NodeSettings(), broker, secrets).make_first_user(0)
    user = broker.administration.user("guest")
    assert user is not None
    assert b64encode(secrets.salt).decode() in user.password_hash
    assert b64encode(secrets.key).decode() not in user.password_hash
