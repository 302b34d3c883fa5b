"""Logins that fail: the clients' answers, their delay, and the clients that have to wait for them or not."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator

import httpx
import pytest
from pika.exceptions import ConnectionClosedByBroker, ProbableAccessDeniedError, ProbableAuthenticationError

from tests.support.client import CAPABILITIES, Connection
from tests.support.fields import table

from .bystander import Bystander
from .configured_broker import ConfiguredBroker, running
from .waiting import PATIENCE_S, pump, wait_until

pytestmark = pytest.mark.only_ours("its users and its log are looked at")

JSON = {"content-type": "application/json"}
USER, PASSWORD = "wilma", "a right password"
REFUSED = "ACCESS_REFUSED - Login was refused using authentication mechanism {}. For details see the broker logfile."
UNKNOWN = "login from 127.0.0.1:.* failed: unknown user or wrong password for '{}'"
FIRST_WAIT_S, LONGEST_WAIT_S = 0.25, 2.0


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConfiguredBroker]:
    with running(ConfiguredBroker(tmp_path_factory.mktemp("guarded"), node={"http": "127.0.0.1:0"})) as broker:
        add_user(broker, USER, PASSWORD)
        yield broker


def add_user(broker: ConfiguredBroker, user: str, password: str, tags: str = "administrator") -> None:
    """Adds a user with a slow hash, as a broker makes it."""
    with broker.api() as api:
        assert api.put(f"users/{user}", json={"password": password, "tags": tags}).status_code in (201, 204)
        rights = {"configure": ".*", "write": ".*", "read": ".*"}
        assert api.put(f"permissions/%2F/{user}", json=rights).status_code in (201, 204)


def try_to_enter(broker: ConfiguredBroker, user: str, password: str) -> float:
    """Returns how long the refusal took."""
    began = time.monotonic()
    with pytest.raises(ProbableAuthenticationError) as caught:
        broker.connect(user, password)
    assert REFUSED.format("PLAIN") in str(caught.value)
    return time.monotonic() - began


# Answers.


@pytest.mark.parametrize("user", [USER, "nobody"])
def test_a_wrong_password_and_an_unknown_user_look_the_same(guarded: ConfiguredBroker, user: str) -> None:
    mark = guarded.mark()
    try_to_enter(guarded, user, "a wrong password")
    (line,) = guarded.lines("WARNING|ERROR", mark)
    assert f"unknown user or wrong password for '{user}'" in line


@pytest.mark.parametrize(
    ("mechanism", "response"),
    [
        ("PLAIN", b"\0wilma\0wrong"),
        ("PLAIN", b"\0wilma\0"),
        ("PLAIN", b"\0\0"),
        ("AMQPLAIN", table({"LOGIN": "wilma", "PASSWORD": "wrong"})[4:]),
    ],
    ids=["PLAIN", "PLAIN, no password", "PLAIN, nothing", "AMQPLAIN"],
)
def test_each_mechanism_refuses_with_its_name(guarded: ConfiguredBroker, mechanism: str, response: bytes) -> None:
    connection = Connection(guarded.address())
    with pytest.raises(AssertionError, match=r"connection\.close 403"):
        connection.log_in(mechanism=mechanism, response=response)
    closed = connection.methods_seen[-1]
    assert closed.reply_text == REFUSED.format(mechanism)
    connection.send("connection.close-ok")
    connection.expect_eof()
    connection.drop()


def test_a_client_without_the_capability_sees_the_socket_close(guarded: ConfiguredBroker) -> None:
    """The behaviour that AMQP defined before `authentication_failure_close`."""
    connection = Connection(guarded.address(USER, "wrong"))
    deaf = {"capabilities": {**CAPABILITIES, "authentication_failure_close": False}}
    with pytest.raises(AssertionError, match="end of stream"):
        connection.log_in(client_properties=deaf)
    connection.drop()


def test_over_http(guarded: ConfiguredBroker) -> None:
    mark = guarded.mark()
    with guarded.api(USER, "a wrong password") as api:
        answer = api.get("whoami")
    assert answer.status_code == 401
    assert answer.json()["error"] == "not_authorized"
    assert len(guarded.lines(UNKNOWN.format(USER), mark)) == 1
    with guarded.api(USER, PASSWORD) as api:
        assert api.get("whoami").json()["name"] == USER


# Delays.


def test_each_failure_takes_longer_up_to_a_limit(guarded: ConfiguredBroker) -> None:
    """The first failure comes from an address, and for a user, without earlier failures."""
    add_user(guarded, "timed", "the right password of timed")
    waits = [refusal_s(guarded, "timed", f"guess {number}", "127.0.0.31") for number in range(3)]
    for number, wait in enumerate(waits):
        assert wait >= min(FIRST_WAIT_S * 2**number, LONGEST_WAIT_S)
    assert waits[0] < LONGEST_WAIT_S
    # The right password does not wait, although its address has failed; it resets no count.
    began = time.monotonic()
    entered = open_login(guarded, "timed", "the right password of timed", "127.0.0.31")
    entered.expect("connection.tune")
    assert time.monotonic() - began < LONGEST_WAIT_S
    entered.drop()
    assert refusal_s(guarded, "timed", "once more", "127.0.0.32") >= LONGEST_WAIT_S
    assert refusal_s(guarded, "another", "once more", "127.0.0.31") >= LONGEST_WAIT_S


def refusal_s(broker: ConfiguredBroker, user: str, password: str, source: str) -> float:
    """Returns how long the refusal takes."""
    began = time.monotonic()
    connection = open_login(broker, user, password, source)
    assert connection.expect("connection.close").reply_code == 403
    connection.drop()
    return time.monotonic() - began


def test_a_crowd_of_bad_logins_does_not_delay_a_good_first_one(guarded: ConfiguredBroker) -> None:
    """The good login comes from the same address. In one queue it would wait for some 200 hashes of 50 ms."""
    add_user(guarded, "first", "the right password of first")
    crowd = [open_login(guarded, f"nobody {number}", "a guess") for number in range(200)]
    began = time.monotonic()
    good = open_login(guarded, "first", "the right password of first")
    good.expect("connection.tune")
    # It takes less than a second on an idle machine.
    assert time.monotonic() - began < 3.0
    for connection in (*crowd, good):
        connection.drop()


def test_http_and_amqp_count_together(guarded: ConfiguredBroker) -> None:
    with guarded.api(USER, "first") as api:
        assert api.get("whoami").status_code == 401
    assert try_to_enter(guarded, USER, "second") >= 2 * FIRST_WAIT_S
    began = time.monotonic()
    with guarded.api(USER, "third") as api:
        assert api.get("whoami").status_code == 401
    assert time.monotonic() - began >= 4 * FIRST_WAIT_S


def test_guesses_side_by_side_wait_for_each_other(guarded: ConfiguredBroker) -> None:
    """A client that guesses on many connections at once is no quicker than on one."""
    mark = guarded.mark()
    guessers = [open_login(guarded, USER, f"guess {number}") for number in range(10)]
    assert guessers[0].expect("connection.close").reply_code == 403
    # The first has been refused, so that the second may have been checked; the others not yet.
    assert 1 <= len(guarded.lines(UNKNOWN.format(USER), mark)) <= 2
    for guesser in guessers:
        guesser.drop()


def open_login(broker: ConfiguredBroker, user: str, password: str, source: str = "127.0.0.1") -> Connection:
    """Sends a login and does not wait for the answer."""
    stream = socket.create_connection(("127.0.0.1", broker.port), PATIENCE_S, source_address=(source, 0))
    connection = Connection(broker.address(user, password), stream)
    connection.send_bytes(b"AMQP\x00\x00\x09\x01")
    connection.expect("connection.start")
    response = f"\0{user}\0{password}".encode()
    properties = {"capabilities": CAPABILITIES}
    connection.send("connection.start-ok", client_properties=properties, mechanism="PLAIN", response=response)
    return connection


def test_a_flood_of_guesses_delays_no_other_client(guarded: ConfiguredBroker) -> None:
    """It delays neither a new user from another address, nor another user from the same one, nor messages."""
    add_user(guarded, "late", "the right password of late")
    add_user(guarded, "later", "the right password of later")
    with Bystander(guarded.address()) as bystander:
        guessers = [open_login(guarded, USER, f"guess {number}") for number in range(60)]
        began = time.monotonic()
        elsewhere = open_login(guarded, "late", "the right password of late", source="127.0.0.2")
        elsewhere.expect("connection.tune")
        beside = open_login(guarded, "later", "the right password of later")
        beside.expect("connection.tune")
        # In a single queue, they would wait for sixty hashes, or for the handshake's limit.
        assert time.monotonic() - began < 5.0
        bystander.goes_on()
        for connection in (*guessers, elsewhere, beside):
            connection.drop()


def test_many_clients_log_in_again_quickly_after_a_restart(guarded: ConfiguredBroker) -> None:
    """The broker has no cached login then. One hash is enough for all clients with the same password."""
    add_user(guarded, "crowd", "the password of the crowd")
    crowd = [open_login(guarded, "crowd", "the password of the crowd") for _ in range(300)]
    began = time.monotonic()
    for connection in crowd:
        connection.expect("connection.tune")
    assert time.monotonic() - began < 5.0
    for connection in crowd:
        connection.drop()


# Changes of users and passwords.


def test_a_changed_password_and_a_deleted_user(guarded: ConfiguredBroker) -> None:
    add_user(guarded, "fickle", "first password")
    living = guarded.connect("fickle", "first password")
    add_user(guarded, "fickle", "second password")
    try_to_enter(guarded, "fickle", "first password")
    guarded.connect("fickle", "second password").close()
    with guarded.api() as api:
        assert api.delete("users/fickle").status_code == 204
    try_to_enter(guarded, "fickle", "second password")
    with guarded.api("fickle", "second password") as api:
        assert api.get("whoami").status_code == 401
    # The connections of a deleted user are closed.
    with pytest.raises(ConnectionClosedByBroker, match="user 'fickle' is deleted"):
        pump(living, lambda: living.is_closed, "the end of the connection")


def test_a_user_without_a_password_cannot_log_in_by_one(guarded: ConfiguredBroker) -> None:
    with guarded.api() as api:
        assert api.put("users/headless", json={"password_hash": "", "tags": ""}).status_code == 201
    connections = [open_login(guarded, "headless", password) for password in ("", "anything")]
    for connection in connections:
        assert connection.expect("connection.close").reply_code == 403
        connection.drop()


# Secrets that no answer and no log contains.


@pytest.mark.parametrize("form", ["text", pytest.param("json", marks=pytest.mark.slow)])
def test_nothing_secret_is_logged_at_any_level(tmp_path_factory: pytest.TempPathFactory, form: str) -> None:
    secrets = [f"{form}-secret-{number}-é" for number in range(6)]
    default, right, wrong, changed, guessed, in_url = secrets
    broker = ConfiguredBroker(
        tmp_path_factory.mktemp(form),
        node={"http": "127.0.0.1:0", "log_level": "debug", "log_format": form},
        auth={"default_user": "root", "default_password": default},
    )
    with running(broker):
        with broker.api("root", default) as api:
            api.put("users/u", json={"password": right, "tags": "administrator"})
            api.put("permissions/%2F/u", json={"configure": ".*", "write": ".*", "read": ".*"})
            api.put("users/u2", json={"password": changed, "tags": 7})
            api.put("users/broken", content=f'{{"password": "{changed}"'.encode(), headers=JSON)
            stored = api.get("users/u").json()["password_hash"]
        broker.connect("u", right).close()
        try_to_enter(broker, "u", wrong)
        with broker.api("u", guessed) as api:
            assert api.get("whoami").status_code == 401
        connection = broker.connect("u", right)
        connection.update_secret(changed, "a new one")
        connection.close()
        # A malformed login, and a password in the wrong place.
        assert httpx.get(f"{broker.http_url}/api/{in_url}", timeout=PATIENCE_S).status_code in (401, 404)
        for response in (b"\0u\0" + wrong.encode() + b"\0more", wrong.encode()):
            peer = Connection(broker.address())
            with pytest.raises(AssertionError):
                peer.log_in(response=response)
            peer.drop()
        broker.hang_up()
        words = broker.words
        for secret in (default, right, wrong, changed, guessed, stored):
            for spelling in (secret, secret.encode().hex(), ascii(secret)[1:-1]):
                assert spelling not in words
        assert "Basic " not in words


def test_a_hash_beside_the_loop(guarded: ConfiguredBroker) -> None:
    """While passwords are being checked, messages are delivered: a client that works all the time has no long pause."""
    over = threading.Event()

    def guess() -> None:
        number = 0
        while not over.is_set():
            connection = open_login(guarded, f"user {number}", "guess")
            connection.drop()
            number += 1

    with Bystander(guarded.address()) as bystander:
        guesser = threading.Thread(target=guess)
        guesser.start()
        wanted = len(bystander.rounds_s) + 100
        wait_until(lambda: len(bystander.rounds_s) >= wanted, "a hundred messages during the flood")
        over.set()
        guesser.join()


def test_pika_gets_a_refusal_for_a_vhost_without_permissions(guarded: ConfiguredBroker) -> None:
    """A right password for a vhost without permissions is refused in another way, and at once."""
    with guarded.api() as api:
        assert api.put("vhosts/private").status_code in (201, 204)
    with pytest.raises(ProbableAccessDeniedError, match="access to vhost 'private' refused"):
        guarded.connect(USER, PASSWORD, virtual_host="private")
