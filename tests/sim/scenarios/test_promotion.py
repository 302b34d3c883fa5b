"""Two brokers, a partition, and an operator who decides."""

from __future__ import annotations

import pytest

from pandomq.replica.effects import AlarmKind
from pandomq.sim.checkers import brokers_equal
from pandomq.sim.ledger import BrokenPromise
from pandomq.sim.state.kept_state import STARTS, kept_state
from tests.sim.scenarios.stage import ClosedByBrokerError, Role, Stage


def two_of_which_one_is_cut_off() -> tuple[Stage, str, str]:
    stage = Stage(count=2)
    root = stage.elect()
    (backup,) = stage.others(root)
    stage.publisher(root).publish_confirmed(b"of both", routing_key="q", delivery_mode=2)
    stage.level(root, backup)
    stage.isolate(root)
    stage.run(2_000)
    return stage, root, backup


@pytest.mark.proves("R18")
def test_promotion_of_the_other_side_then_heal() -> None:
    stage, root, backup = two_of_which_one_is_cut_off()
    # Half of the primaries keep a root: it serves, and confirms nothing.
    alone = stage.publisher(root)
    alone.publish(b"of the old root alone", routing_key="q", delivery_mode=2)
    assert stage.promote(backup, root)[0]
    assert stage.elect(besides=root) == backup
    channel = stage.publisher(backup)
    channel.publish_confirmed(b"of the new epoch", routing_key="q", delivery_mode=2)
    assert not any(method.name == "basic.ack" for method in alone.connection.methods_seen)

    stage.heal()
    with pytest.raises(ClosedByBrokerError, match="no longer the root"):
        alone.confirmed()
    stage.until(lambda: stage.machines[root].replica is not None and stage.role(root) is Role.LEARNER, "learner")
    stage.level(backup, root)
    assert channel.drain("q") == [b"of both", b"of the new epoch"]
    files = stage.machines[root].disk.sizes
    stage.until(lambda: any(name.startswith("aside") for name in files()), "file with what the old root alone had")


@pytest.mark.proves("R18")
def test_promotion_of_both_sides_then_heal() -> None:
    stage, root, backup = two_of_which_one_is_cut_off()
    stage.kill(root)
    stage.run(500)
    stage.start(root)
    stage.run(3_000)
    assert stage.roots == [], "neither has more than half"
    for name, other in ((root, backup), (backup, root)):
        assert stage.promote(name, other)[0]
    stage.until(lambda: len(stage.roots) == 2, "two roots, which is what the person asked for")
    channels = {name: stage.publisher(name) for name in (root, backup)}
    for name, channel in channels.items():
        channel.publish_confirmed(name.encode(), routing_key="q", delivery_mode=2)

    # Two epochs with the same number never merge by themselves: both brokers report the conflict, and both stay as they
    # are.
    stage.heal()
    for name in (root, backup):
        alarms = stage.node(name).peers.knowledge.alarms
        stage.until(lambda alarms=alarms: AlarmKind.SPLIT_EPOCHS in alarms, "alarm")  # type: ignore[misc]
    stage.run(2_000)
    assert sorted(stage.roots) == ["n1", "n2"]
    for name, channel in channels.items():
        channel.publish_confirmed(b"still", routing_key="q", delivery_mode=2)
        assert channel.drain("q") == [b"of both", name.encode(), b"still"]


def test_a_promotion_is_refused_while_the_dead_answer() -> None:
    stage = Stage(count=2)
    root = stage.elect()
    (backup,) = stage.others(root)
    done, text = stage.promote(backup, root)
    assert not done and "root" in text
    assert stage.roots == [root]


def test_numbers_of_messages_in_no_entry_differ_after_a_restart_from_a_snapshot() -> None:
    stage = Stage(count=2)
    root = stage.elect()
    (backup,) = stage.others(root)
    stage.publisher(root).publish_confirmed(b"of both", routing_key="q", delivery_mode=2)
    stage.level(root, backup)
    stage.kill(backup)
    stage.kill(root)
    stage.start(root)
    stage.run(2_000)
    assert stage.promote(root, backup)[0]
    stage.elect()
    alone_since = stage.broker(root).engine.term
    # The only member writes no entry for a transient message, and its snapshot holds the number of the message.
    channel = stage.publisher(root)
    channel.publish_confirmed(b"in no entry", routing_key="q")
    stage.publisher(root, "ballast")
    sizes = stage.machines[root].disk.sizes
    while not any(name.endswith(".snap") for name in sizes()):
        channel.publish_confirmed(bytes(10_000), routing_key="ballast", delivery_mode=2)
    stage.start(backup)
    stage.until(lambda: stage.machines[backup].replica is not None, "learner")
    stage.level(root, backup)
    stage.kill(root)
    stage.start(root)
    assert stage.elect() == root
    machines = list(stage.machines.values())
    stage.until(lambda: brokers_equal.are_level(machines, stage.machines[root]), "equal brokers")

    starts = {name: kept_state(stage.broker(name))[STARTS] for name in (root, backup)}
    last = stage.broker(root).engine.term
    assert (starts[root][last][1], starts[backup][last][1]) == (3, 2)
    assert starts[root][alone_since] == starts[backup][alone_since] == {1: 2}
    brokers_equal.check(machines, stage.machines[root], alone_since=alone_since)

    # The terms that began while every number was in an entry are still compared.
    own = next(firsts for term, firsts in stage.broker(backup).state.term_starts._starts if term == alone_since)
    own[1] += 1
    with pytest.raises(BrokenPromise, match=rf"starts of terms: {alone_since} is"):
        brokers_equal.check(machines, stage.machines[root], alone_since=alone_since)
