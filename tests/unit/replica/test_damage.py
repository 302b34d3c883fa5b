"""Stories about a log that went bad (D12): it votes by what it had, does not stand, and is repaired from its peers."""

from __future__ import annotations

from pandomq.ids import NodeName
from pandomq.replica.effects import Alarm, AlarmKind
from pandomq.replica.roles.transitions import Role
from pandomq.replica.store_facts import Damage
from tests.unit.replica.world import Node, World


def damage(node: Node, first_index: int) -> None:
    """Bits flip in this entry and all after it; the table still says that they were there."""
    if node.up:
        node.crash()
    entries = node.store.durable.entries
    node.store.damage = Damage(first_index, entries[-1].term, len(entries))
    node.store.bad = entries[first_index - 1 :]
    del entries[first_index - 1 :]
    node.store.crash()


def test_a_bit_flips_in_the_last_entry_of_a_backup_the_root_dies_and_a_laggard_stands() -> None:
    world = World("abc")
    root = world.elect("a")
    world["c"].crash()
    root.propose(b"precious")
    world.settle()
    assert world.committed("a") == [b"precious"]
    damage(world["b"], len(world["b"].store.durable.entries))
    root.crash()
    world["b"].start()
    world["c"].start()
    world.advance(10_000)
    # c lacks the entry: b, which had it, does not vote for c, and does not stand.
    assert world.roots == []
    assert world["b"].replica.view().repairing
    world["a"].start()
    assert world.elect().name == "a"
    world.advance(2_000)
    assert world.committed("b") == world.committed("c") == [b"precious"]
    assert not world["b"].replica.view().repairing


def test_a_damaged_log_is_repaired_and_its_damaged_part_kept_aside() -> None:
    world = World("abc")
    root = world.elect("a")
    root.propose(b"one")
    root.propose(b"two")
    world.settle()
    damage(world["b"], 4)
    world["b"].start()
    world.advance(2_000)
    assert world.log("b") == world.log("a")
    assert not world["b"].replica.view().repairing
    assert world["b"].plays(Role.BACKUP)
    assert len(world["b"].store.durable.aside) == 1
    kinds = [(alarm.kind, alarm.raised) for alarm in world["b"].told if isinstance(alarm, Alarm)]
    assert kinds == [(AlarmKind.DAMAGED_LOG, True), (AlarmKind.DAMAGED_LOG, False)]


def test_a_broker_that_crashes_during_a_repair_votes_with_its_former_log() -> None:
    world = World("abc")
    root = world.elect("a")
    for number in range(10):
        root.propose(str(number).encode())
    world.settle()
    world["c"].crash()
    root.propose(b"precious")
    world.settle()
    damage(world["b"], 5)
    world["b"].start()
    while world["b"].store.damage is not None:
        for node in world.nodes.values():
            if not (node.disk_step() or node.receive()):
                node.tick()
        world.now_ms += 1
    world["b"].crash()
    root.crash()
    world["b"].start()
    world["c"].start()
    world.advance(10_000)
    assert world.roots == [] or world.committed(world.roots[0].name)[-1] == b"precious"


def test_a_broker_with_a_damaged_log_votes_for_one_that_has_all_it_had() -> None:
    world = World("abc")
    root = world.elect("a")
    root.propose(b"one")
    world.settle()
    damage(world["b"], 3)
    root.crash()
    world["b"].start()
    assert world.elect().name == "c"


def test_a_store_in_doubt_is_a_learner_with_a_log() -> None:
    world = World("abc")
    root = world.elect("a")
    root.propose(b"one")
    world.settle()
    world["b"].crash()
    world["b"].store.doubtful = True
    world["b"].start()
    assert world["b"].plays(Role.LEARNER)
    world["b"].store.doubtful = False
    world.advance(1_000)
    assert world["b"].plays(Role.BACKUP)
    assert world.log("b") == [b"one"]


def test_an_operator_promotes_the_last_survivor_although_its_log_is_damaged() -> None:
    world = World("abc")
    root = world.elect("a")
    for payload in (b"one", b"two", b"three"):
        root.propose(payload)
    world.settle()
    damage(world["b"], len(world["b"].store.durable.entries))
    root.crash()
    world["c"].crash()
    world["b"].start()
    world.advance(3_000)
    world["b"].replica.promote([NodeName("a"), NodeName("c")], "without the others")
    world["b"].do_effects()
    assert world.elect().name == "b"
    assert world.committed("b") == [b"one", b"two"]
    assert [entry.payload for entry in world["b"].store.durable.aside[0]] == [b"three"]


def test_members_that_were_in_the_damaged_part_come_back_with_the_log() -> None:
    world = World("abcd", voters="abc")
    root = world.elect("a")
    world.advance(1_000)
    root.replica.change_members(World.members("abcd"))
    root.do_effects()
    world.advance(1_000)
    root.propose(b"one")
    world.settle()
    damage(world["b"], 3)
    world["b"].start()
    assert world["b"].replica.view().membership != root.replica.view().membership
    world.advance(1_000)
    assert world["b"].replica.view().membership == root.replica.view().membership
    assert world["b"].plays(Role.BACKUP) and not world["b"].replica.view().repairing
    root.crash()
    world.elect()
