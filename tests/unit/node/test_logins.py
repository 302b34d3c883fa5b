"""Logins: the first user, wrong passwords, remembered ones, certificates."""

from base64 import b64encode
from hashlib import sha256
from random import Random

import pytest

from pandomq.broker.administration import passwords
from pandomq.broker.administration.passwords import RABBITMQ_SHA256, SCRYPT, hash_password
from pandomq.broker.broker import Broker
from pandomq.broker.limits import BrokerLimits
from pandomq.broker.log.commands import DeleteUser, PutUser
from pandomq.errors import Fault
from pandomq.ids import UserName
from pandomq.node.clients.logins import LoginAccepted, LoginRefused, Logins, PasswordCheck, Secrets
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
    assert logins.ask(plain("guest", b"guest"), None, from_loopback=True) == LoginAccepted("guest")
    assert logins.tags("guest") == ("administrator",)


def test_guest_logs_in_from_the_loopback_only(logins: Logins) -> None:
    answer = logins.ask(plain("guest", b"guest"), None, from_loopback=False)
    assert isinstance(answer, LoginRefused)
    assert "this machine only" in answer.reason


@pytest.mark.parametrize("user", ["guest", "nobody"])
def test_a_wrong_password_is_checked_whether_the_user_exists_or_not(logins: Logins, user: str) -> None:
    question = logins.ask(plain(user, b"wrong"), None, from_loopback=True)
    assert isinstance(question, PasswordCheck)
    assert not question.fits()
    answer = logins.learn(question, fits=False)
    assert isinstance(answer, LoginRefused)
    assert "wrong" not in answer.reason.replace("wrong password", ""), "the password is not in the log"


def test_a_missing_user_cannot_log_in_with_the_first_users_password(logins: Logins) -> None:
    question = logins.ask(plain("nobody", b"guest"), None, from_loopback=True)
    assert isinstance(question, PasswordCheck)
    assert not question.fits()


def test_a_verified_password_is_remembered_until_it_changes(broker: Broker, logins: Logins) -> None:
    change(broker, PutUser("ann", hash_password(b"secret", b"salt"), SCRYPT, ()))
    question = logins.ask(plain("ann", b"secret"), None, from_loopback=False)
    assert isinstance(question, PasswordCheck)
    assert logins.learn(question, fits=question.fits()) == LoginAccepted("ann")
    assert logins.ask(plain("ann", b"secret"), None, from_loopback=False) == LoginAccepted("ann")
    change(broker, PutUser("ann", hash_password(b"other", b"salt"), SCRYPT, ()))
    assert isinstance(logins.ask(plain("ann", b"secret"), None, from_loopback=False), PasswordCheck)


def test_a_user_deleted_while_its_password_is_checked_stays_out(broker: Broker, logins: Logins) -> None:
    change(broker, PutUser("ann", hash_password(b"secret", b"salt"), SCRYPT, ()))
    question = logins.ask(plain("ann", b"secret"), None, from_loopback=False)
    assert isinstance(question, PasswordCheck)
    change(broker, DeleteUser("ann"))
    assert isinstance(logins.learn(question, fits=True), LoginRefused)


def test_a_certificate_names_a_user(logins: Logins) -> None:
    external = Login("EXTERNAL", UserName(""), b"", {})
    assert logins.ask(external, "guest", from_loopback=True) == LoginAccepted("guest")
    assert isinstance(logins.ask(external, "guest", from_loopback=False), LoginRefused), "guest stays at home"
    assert isinstance(logins.ask(external, "stranger", from_loopback=False), LoginRefused)
    assert isinstance(logins.ask(external, None, from_loopback=False), LoginRefused)


def test_the_key_is_not_in_any_hash(broker: Broker) -> None:
    secrets = Secrets.draw(Random(2))
    Logins(NodeSettings(), broker, secrets).make_first_user(0)
    user = broker.administration.user("guest")
    assert user is not None
    assert b64encode(secrets.salt).decode() in user.password_hash
    assert b64encode(secrets.key).decode() not in user.password_hash


@pytest.mark.proves("R38")
def test_every_refusal_takes_the_same_work_whatever_the_hash(
    broker: Broker, logins: Logins, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user may have been imported with a quick hash of RabbitMQ, or with one that is slower than ours."""
    hashes = {"older": 13, "ours": 14, "slower": 15, "slowest": 17}
    for name, log_cost in hashes.items():
        change(broker, PutUser(name, hash_password(b"right", b"sixteen bytes ok", log_cost), SCRYPT, ()))
    change(
        broker, PutUser("imported", b64encode(b"salt" + sha256(b"saltright").digest()).decode(), RABBITMQ_SHA256, ())
    )
    work: list[int] = []

    def counted(_password: bytes, *, n: int, r: int, p: int, **_other: object) -> bytes:
        work.append(n * r * p)
        return bytes(32)

    monkeypatch.setattr(passwords, "scrypt", counted)
    of_users = {}
    for name in (*hashes, "imported", "nobody"):
        question = logins.ask(plain(name, b"wrong"), None, from_loopback=True)
        assert isinstance(question, PasswordCheck)
        work.clear()
        assert not question.fits()
        of_users[name] = sum(work)
    assert set(of_users.values()) == {8 << 17}
