"""Users: the first one, those that follow, and what ends with them."""

import pytest

from pandomq import limits, methods
from pandomq.broker.administration import administration_views as views
from pandomq.broker.administration.passwords import RABBITMQ_SHA256, SCRYPT, hash_password
from pandomq.broker.log.commands import (
    AdministrativeCommand,
    DeleteUser,
    PutLimits,
    PutPermissions,
    PutTopicPermissions,
    PutUser,
)
from pandomq.errors import ConnectionFault
from pandomq.properties import Properties
from tests.unit.broker.conversation import GUEST, World

HASH = hash_password(b"secret", b"salt")


def emptied() -> World:
    """A world that never had a user: not even the one that all worlds have."""
    world = World()
    world.broker.change(DeleteUser("guest"))
    world.broker.state.had_users = False
    return world


def test_the_first_user_may_do_everything() -> None:
    world = emptied()
    world.broker.administration.bootstrap("root", HASH, world.now_ms)
    world.run([])
    assert list(views.users(world.broker)) == [views.UserView("root", HASH, SCRYPT, ("administrator",), {})]
    assert list(views.permissions(world.broker)) == [views.PermissionsView("root", "/", ".*", ".*", ".*")]
    assert world.peer("root").declare("q").queue == "q"
    replayed = world.replayed().broker
    assert [user.name for user in views.users(replayed)] == ["guest", "root"]


def test_there_is_only_one_first_user() -> None:
    world = emptied()
    for name in ("root", "other"):
        world.broker.administration.bootstrap(name, HASH, world.now_ms)
    assert list(world.broker.state.users) == ["root"]
    assert world.administer(DeleteUser("root")) is None
    world.broker.administration.bootstrap("root", HASH, world.now_ms)
    assert not world.broker.state.users, "whoever deleted it did not want it back"


def test_passwords() -> None:
    world = World()
    verify = world.broker.administration.verify
    assert world.administer(PutUser("ann", HASH, SCRYPT, ())) is None
    assert verify("ann", b"secret")
    assert not verify("ann", b"other")
    assert not verify("nobody", b"nobody")
    assert not verify("guest", b""), "it has no password"
    sha = "bMqcbmBvE5+R+DiLwm9xJZXS4T/Ri3PPENC3hQ8nl/umiGnq"
    assert world.administer(PutUser("ann", sha, RABBITMQ_SHA256, ())) is None
    assert verify("ann", b"rabbit")
    assert not verify("ann", b"secret")


def test_a_new_password_leaves_permissions_and_limits() -> None:
    world = World()
    world.admit("ann")
    assert world.administer(PutLimits("user", "ann", {"max-channels": 5})) is None
    assert world.administer(PutUser("ann", HASH, SCRYPT, ("monitoring", "mine"))) is None
    user = world.broker.administration.user("ann")
    assert user == views.UserView("ann", HASH, SCRYPT, ("monitoring", "mine"), {"max-channels": 5})
    assert world.peer("ann").declare("q").queue == "q"
    assert world.broker.administration.user("nobody") is None


def test_with_a_user_goes_all_it_had() -> None:
    world = World()
    world.admit("ann")
    assert world.administer(PutTopicPermissions("/", "ann", "amq.topic", "a", "b")) is None
    ann, guest = world.peer("ann"), world.peer()
    ann.declare("mine", exclusive=True)
    ann.declare("shared", auto_delete=True)
    ann.consume("shared")
    guest.declare("other")
    assert world.administer(DeleteUser("ann")) is None
    assert str(ann.fault()) == "320 CONNECTION_FORCED - user 'ann' is deleted"
    assert guest.client not in world.closed
    assert set(world.broker.state.vhosts["/"].queues) == {"other"}
    assert not list(views.topic_permissions(world.broker))
    assert [view.user for view in views.permissions(world.broker)] == ["guest"]
    ann.leave()
    with pytest.raises(ConnectionFault, match="access to vhost '/' refused for user 'ann'"):
        world.connect(user="ann")
    world.admit("ann", "", "", "")
    assert world.peer("ann").refused(methods.QueueDeclare("q")).reply_code == 403


def test_a_user_who_comes_back_is_a_new_one() -> None:
    world = World()
    world.admit("ann")
    old = world.peer("ann")
    assert world.administer(DeleteUser("ann")) is None
    world.admit("ann")
    old.send(methods.QueueDeclare("q"))
    assert "q" not in world.broker.state.vhosts["/"].queues
    old.leave()
    assert world.peer("ann").declare("q").queue == "q"
    assert world.broker.tallies["ann"].connection_count == 1


def test_only_an_impersonator_may_publish_with_another_user_id() -> None:
    world = World()
    world.admit("ann")
    ann = world.peer("ann")
    ann.declare("q")
    ann.publish("", "q", b"", Properties(user_id="bob"))
    (close,) = ann.heard()
    assert isinstance(close, methods.ChannelClose)
    assert close.reply_code == 406
    ann.reopen()
    assert world.administer(PutUser("ann", "", SCRYPT, ("impersonator",))) is None
    ann.publish("", "q", b"", Properties(user_id="bob"))
    assert ann.counts() == (1, 0)


LONG = "x" * (limits.USER_NAME_BYTES_MAX + 1)


@pytest.mark.parametrize(
    ("command", "code", "text"),
    [
        (PutUser("", "", SCRYPT, ()), 406, "the user name is empty"),
        (PutUser(LONG, "", SCRYPT, ()), 406, "the user name has 256 bytes: at most 255 are allowed"),
        (PutUser("\ud800", "", SCRYPT, ()), 406, "the user name is not valid Unicode"),
        (PutUser("u", "", SCRYPT, ("t",) * 33), 406, "the user would have 33 tags: at most 32 are allowed"),
        (PutUser("u", "", SCRYPT, ("",)), 406, "the tag is empty"),
        (PutUser("u", "x", SCRYPT, ()), 406, "password_hash is not a valid scrypt hash"),
        (
            PutUser("u", "x", "md5", ()),
            406,
            "unknown hashing algorithm 'md5': expected one of scrypt, rabbit_password_hashing_sha256, "
            "rabbit_password_hashing_sha512",
        ),
        (DeleteUser("nobody"), 404, "no user 'nobody'"),
        (PutPermissions("/", "nobody", "", "", ""), 404, "no user 'nobody'"),
        (PutLimits("user", "nobody", {}), 404, "no user 'nobody'"),
    ],
)
def test_wrong_commands_about_users_are_refused(command: AdministrativeCommand, code: int, text: str) -> None:
    world = World()
    fault = world.administer(command)
    assert fault is not None
    assert (fault.reply_code, fault.reply_text) == (code, text)
    assert world.entries == []


@pytest.mark.parametrize("name", ["ä" * 127, "a\0b", "../..", "'; --", "\U0001f407", " ", "{username}", "a\nb"])
def test_strange_names_are_names(name: str) -> None:
    world = World()
    world.admit(name)
    assert world.peer(name).declare("q").queue == "q"
    assert world.replayed().peer(name).counts() == (0, 0)
    assert world.administer(DeleteUser(name)) is None


def test_done_means_committed() -> None:
    world = World(late=True)
    heard: list[object] = []
    world.broker.administration.submit(PutUser("ann", "", SCRYPT, ()), heard.append, world.now_ms)
    world.run([])
    assert heard == []
    world.commit()
    assert heard == [None]


def test_the_number_of_users_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "USERS_MAX", 2)
    world = World()
    world.admit("ann")
    fault = world.administer(PutUser("bob", "", SCRYPT, ()))
    assert fault is not None and fault.reply_text == "the maximum number of users (2) is reached: delete one first"
    assert world.administer(PutUser("ann", HASH, SCRYPT, ())) is None
    assert world.administer(*GUEST) is None
