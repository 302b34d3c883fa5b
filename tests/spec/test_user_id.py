"""The user-id property is checked."""

from __future__ import annotations

from tests.support.client import Channel


def test_ones_own_name_passes(channel: Channel) -> None:
    queue = channel.declare_queue()
    channel.publish("m", queue, user_id=channel.connection.address.user)
    found = channel.get(queue)
    assert found is not None
    assert found.properties == {"user_id": channel.connection.address.user}


def test_another_name_does_not(channel: Channel) -> None:
    queue = channel.declare_queue()
    sibling = channel.connection.channel()
    sibling.publish("m", queue, user_id="somebody")
    user = channel.connection.address.user
    text = f"PRECONDITION_FAILED - user_id property set to 'somebody' but authenticated user was '{user}'"
    sibling.expect_close(406, text, "basic.publish")
    assert channel.counts(queue) == (0, 0)


def test_a_user_id_is_checked_in_the_middle_of_a_batch(channel: Channel, name: str) -> None:
    queue = channel.declare_queue(name)
    with channel.connection.in_segments("whole"):
        for number in range(10):
            channel.publish(str(number), queue, user_id="guest" if number != 5 else "thief")
    channel.expect_close(406, "PRECONDITION_FAILED - user_id property set to 'thief' but …", "basic.publish")
    assert len(channel.connection.channel().drain(queue)) == 5
