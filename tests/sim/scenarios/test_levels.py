"""The promises of each level, when machines lose power at the worst moment."""

from __future__ import annotations

import pytest

from pandomq.sim.disks.disk import DiskPace
from tests.sim.scenarios.stage import Loss, Stage

SLOW = DiskPace(sync_us=(60_000, 60_000), joined_chance=0.0)


@pytest.mark.proves("R22")
@pytest.mark.parametrize("between_ms", range(0, 200, 20))
def test_mixed_levels_with_power_loss_of_one_then_the_other_between_write_and_sync(between_ms: int) -> None:
    stage = Stage(count=2, pace=SLOW, lease_ms=1_000, seed=between_ms)
    first = stage.elect()
    (second,) = stage.others(first)
    channel = stage.publisher(first)
    channel.publish_confirmed(b"safe", routing_key="q", delivery_mode=2)
    stage.level(first, second)

    persistent = [b"persistent %d" % number for number in range(4)]
    for number, body in enumerate(persistent):
        channel.publish(body, routing_key="q", delivery_mode=2)
        channel.publish(b"transient %d" % number, routing_key="q")
        stage.run(7)
    stage.run(between_ms)
    confirmed = {
        tag
        for method in channel.connection.methods_seen
        if method.name == "basic.ack"
        for tag in (range(1, method.delivery_tag + 1) if method.multiple else (method.delivery_tag,))
    }
    stage.kill(second, Loss.ALL)
    stage.run(5)
    stage.kill(first, Loss.ALL)
    stage.start(first, second)

    left = stage.client(stage.elect()).channel().drain("q")
    # One tag was of the message that was durable before; then persistent and transient messages alternate.
    promised = [body for number, body in enumerate(persistent) if 2 + 2 * number in confirmed]
    assert left[0] == b"safe"
    assert [body for body in left if body in promised] == promised
    assert [body for body in left if body in persistent] == persistent[: len([b for b in left if b in persistent])]


@pytest.mark.proves("R22")
def test_a_transient_message_in_a_replicated_queue_outlives_the_root_that_confirmed_it() -> None:
    stage = Stage(pace=SLOW, lease_ms=1_000)
    old = stage.elect()
    channel = stage.publisher(old)
    channel.publish_confirmed(b"transient", routing_key="q")
    stage.kill(old)
    assert stage.client(stage.elect(besides=old)).channel().drain("q") == [b"transient"]
