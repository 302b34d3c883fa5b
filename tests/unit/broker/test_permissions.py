"""Permissions as they change under people who use them, and those on the routing keys of topic exchanges."""

from __future__ import annotations

import pytest

from pandomq import limits, methods
from pandomq.broker.administration import administration_views as views
from pandomq.broker.administration import permissions as permissions_module
from pandomq.broker.administration.permissions import Permissions, Right, TopicPermissions, VhostAccess
from pandomq.broker.log.commands import (
    AdministrativeCommand,
    DeletePermissions,
    DeleteTopicPermissions,
    PutPermissions,
    PutTopicPermissions,
)
from pandomq.properties import Properties
from tests.unit.broker.conversation import Peer, World


def refusal(right: str, key: str, user: str = "bob", exchange: str = "amq.topic") -> str:
    return (
        f"ACCESS_REFUSED - {right} access to topic '{key}' in exchange '{exchange}' in vhost '/' refused for user "
        f"'{user}'"
    )


def world_with(write: str = ".*", read: str = ".*", user: str = "bob") -> tuple[World, Peer]:
    """A user with topic permissions on amq.topic, and its queue."""
    world = World()
    world.admit(user)
    assert world.administer(PutTopicPermissions("/", user, "amq.topic", write, read)) is None
    peer = world.peer(user)
    peer.declare("q")
    return world, peer


# Patterns for names.


def test_patterns_are_searched_for_and_no_pattern_matches_no_name() -> None:
    access = VhostAccess("u", "/", 10)
    access.grant(Permissions("^a", "", "b$"))
    assert access.allows(Right.CONFIGURE, "ab") and not access.allows(Right.CONFIGURE, "ba")
    assert access.allows(Right.WRITE, "") and not access.allows(Right.WRITE, "a")
    assert access.allows(Right.READ, "ab") and not access.allows(Right.READ, "ba")


def test_without_a_grant_nothing_is_allowed() -> None:
    access = VhostAccess("u", "/", 10)
    assert not any(access.allows(right, name) for right in Right for name in ("", "a"))
    access.grant(Permissions(".*", ".*", ".*"))
    assert all(access.allows(right, "a") for right in Right)
    access.revoke()
    assert not any(access.allows(right, "a") for right in Right)


def test_remembered_answers_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(permissions_module, "PERMISSION_ANSWERS_CACHED_MAX", 10)
    access = VhostAccess("u", "/", 10)
    access.grant(Permissions("^[0-4]", "", ""))
    access.grant_topic("x", TopicPermissions("^[0-4]", ""))
    for number in range(100):
        assert access.allows(Right.CONFIGURE, f"{number:02}") is (number < 50)
        assert access.allows_topic(Right.WRITE, "x", f"{number:02}") is (number < 50)
        assert len(access._answers[Right.CONFIGURE]) <= 10
        assert len(access._topic_answers) <= 10


def test_changes_count_at_once() -> None:
    world = World()
    world.admit("bob")
    bob = world.peer("bob")
    bob.declare("q")
    bob.publish("", "q")
    routes = bob.client.session.routes
    assert len(routes) == 1
    assert world.administer(PutPermissions("/", "bob", "", "^amq\\.topic$", "^q$")) is None
    assert len(routes) == 0
    bob.publish("", "q")
    close = bob.heard()[-1]
    assert isinstance(close, methods.ChannelClose)
    assert close.reply_text.startswith("ACCESS_REFUSED - write access to exchange 'amq.default'")
    bob.reopen()
    assert bob.refused(methods.QueueDeclare("r")).reply_code == 403
    assert world.administer(PutPermissions("/", "bob", ".*", ".*", ".*")) is None
    bob.publish("", "q")
    assert bob.counts() == (2, 0)


def test_one_users_permissions_are_not_anothers() -> None:
    world = World()
    world.admit("bob")
    world.admit("ann")
    bob, ann = world.peer("bob"), world.peer("ann")
    bob.declare("q")
    for peer in (bob, ann):
        peer.publish("", "q")
    assert world.administer(PutPermissions("/", "ann", "", "", "")) is None
    assert (len(ann.client.session.routes), len(bob.client.session.routes)) == (0, 1)
    for peer in (bob, ann):
        peer.publish("", "q")
    assert bob.counts() == (3, 0)


# Patterns for routing keys.


def test_publishing_to_topics() -> None:
    _, bob = world_with(write="^a\\.")
    for key in ("a.b", "a.c"):
        bob.publish("amq.topic", key).publish("amq.topic", key)
    assert bob.heard() == []
    bob.publish("amq.topic", "b.a")
    assert bob.heard() == [methods.ChannelClose(403, refusal("write", "b.a"), 60, 40)]


def test_other_exchanges_do_not_ask_for_topics() -> None:
    world, bob = world_with(write="")
    assert world.administer(PutTopicPermissions("/", "bob", "amq.direct", "", "")) is None
    bob.publish("amq.direct", "k").publish("amq.fanout", "k").publish("", "q")
    assert bob.counts() == (1, 0)
    bob.call(methods.ExchangeDeclare("other", "topic"), expect=methods.ExchangeDeclareOk)
    bob.publish("other", "k")
    assert bob.heard() == []


def test_all_keys_of_a_message_are_asked_for() -> None:
    _, bob = world_with(write="^a")
    bob.publish("amq.topic", "a", b"", Properties(headers={"CC": ["ab"], "BCC": ["ac"]}))
    assert bob.heard() == []
    for headers in ({"CC": ["ab", "b"]}, {"BCC": ["b"]}):
        bob.publish("amq.topic", "a", b"", Properties(headers=headers))
        assert bob.heard() == [methods.ChannelClose(403, refusal("write", "b"), 60, 40)]
        bob.reopen()


def test_binding_to_topics() -> None:
    _, bob = world_with(read="^a")
    for method in (
        methods.QueueBind("q", "amq.topic", "b"),
        methods.QueueUnbind("q", "amq.topic", "b"),
        methods.ExchangeBind("amq.fanout", "amq.topic", "b"),
        methods.ExchangeUnbind("amq.fanout", "amq.topic", "b"),
    ):
        close = bob.refused(method)
        assert (close.reply_code, close.reply_text) == (403, refusal("read", "b"))
    bob.call(methods.QueueBind("q", "amq.topic", "a"), expect=methods.QueueBindOk)
    bob.call(methods.ExchangeBind("amq.fanout", "amq.topic", "a"), expect=methods.ExchangeBindOk)
    bob.call(methods.QueueUnbind("q", "amq.topic", "a"), expect=methods.QueueUnbindOk)


@pytest.mark.parametrize(
    ("user", "pattern", "allowed", "refused"),
    [
        ("bob", "^{username}\\.", "bob.x", "ann.x"),
        ("bob", "^{username}-{vhost}$", "bob-/", "bob-v"),
        ("a.b", "^{username}$", "a.b", "axb"),
        (".*", "^{username}$", ".*", "anything"),
        ("a|b", "^{username}$", "a|b", "a"),
        ("{vhost}", "^{username}$", "{vhost}", "/"),
        ("bob", "^{client_id}$", "{client_id}", "bob"),
    ],
)
def test_names_in_topic_patterns(user: str, pattern: str, allowed: str, refused: str) -> None:
    _, peer = world_with(write=pattern, user=user)
    peer.publish("amq.topic", allowed)
    assert peer.heard() == []
    peer.publish("amq.topic", refused)
    assert peer.heard() == [methods.ChannelClose(403, refusal("write", refused, user), 60, 40)]


def test_topic_permissions_come_and_go() -> None:
    world, bob = world_with()
    bob.publish("amq.topic", "k")
    assert world.administer(PutTopicPermissions("/", "bob", "amq.topic", "^a", "")) is None
    bob.publish("amq.topic", "k")
    assert [type(method) for method in bob.heard()] == [methods.ChannelClose]
    bob.reopen()
    assert world.administer(PutTopicPermissions("/", "bob", "x", "w", "r")) is None
    seen = [(view.exchange, view.write, view.read) for view in views.topic_permissions(world.broker)]
    assert seen == [("amq.topic", "^a", ""), ("x", "w", "r")]
    assert world.administer(DeleteTopicPermissions("/", "bob", "amq.topic")) is None
    bob.publish("amq.topic", "k")
    assert bob.heard() == []
    assert world.administer(DeleteTopicPermissions("/", "bob")) is None
    assert not list(views.topic_permissions(world.broker))


@pytest.mark.parametrize(
    ("command", "code", "text"),
    [
        (PutPermissions("/", "bob", "(", "", ""), 406, "regular expression '(' is invalid: {\"missing )\",1}"),
        (
            PutPermissions("/", "bob", "a" * 2000, "", ""),
            406,
            "the pattern has 2000 bytes: at most 1024 are allowed",
        ),
        (PutPermissions("/", "bob", "", "", "\ud800"), 406, "the pattern is not valid Unicode"),
        (PutTopicPermissions("/", "bob", "x", "", "["), 406, None),
        (PutTopicPermissions("/", "bob", "", "", ""), 406, "the exchange name is empty"),
        (PutTopicPermissions("/", "nobody", "x", "", ""), 404, "no user 'nobody'"),
        (DeletePermissions("/", "nobody"), 404, "no user 'nobody'"),
        (DeletePermissions("/", "ann"), 404, "user 'ann' does not have these permissions in vhost '/'"),
        (DeleteTopicPermissions("/", "bob"), 404, "user 'bob' does not have these permissions in vhost '/'"),
        (DeleteTopicPermissions("/", "bob", "x"), 404, "user 'bob' does not have these permissions in vhost '/'"),
        (DeleteTopicPermissions("/", "ann", "x"), 404, "user 'ann' does not have these permissions in vhost '/'"),
    ],
)
def test_wrong_commands_about_permissions_are_refused(
    command: AdministrativeCommand, code: int, text: str | None
) -> None:
    world = World()
    world.admit("bob")
    world.admit("ann")
    assert world.administer(DeletePermissions("/", "ann")) is None
    fault = world.administer(command)
    assert fault is not None
    assert fault.reply_code == code
    assert text in (None, fault.reply_text)


def test_a_pattern_that_only_the_names_in_it_make_too_large_is_refused() -> None:
    world = World()
    name = "x" * 255
    world.admit(name)
    fault = world.administer(PutTopicPermissions("/", name, "x", "{username}" * 10, ""))
    assert fault is not None and fault.reply_text.startswith("with the names in it, regular expression")
    assert world.administer(PutTopicPermissions("/", name, "x", "{username}", "")) is None


def test_the_number_of_topic_permissions_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "TOPIC_PERMISSIONS_PER_USER_MAX", 2)
    world, _ = world_with()
    assert world.administer(PutTopicPermissions("/", "bob", "x", "", "")) is None
    fault = world.administer(PutTopicPermissions("/", "bob", "y", "", ""))
    assert fault is not None and fault.reply_code == 406
    assert world.administer(PutTopicPermissions("/", "bob", "x", "a", "")) is None


def test_a_hostile_pattern_takes_no_time() -> None:
    world = World()
    world.admit("bob", "(a+)+$", "(a*)*b", "((a|aa)+)+$")
    bob = world.peer("bob")
    for method in (methods.QueueDeclare("a" * 250 + "!"), methods.BasicGet("a" * 250 + "!")):
        assert bob.refused(method).reply_code == 403
