"""Checks that all brokers hold the same state at rest (P8): the content of snapshots, and the bytes of messages.

Secondaries hold the configuration alone. A broker that is restored from a snapshot of the root has the root's state,
too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from pandomq.node.broker_state import BrokerState
from pandomq.properties import PERSISTENT, read_property
from pandomq.sim.ledger import BrokenPromise
from pandomq.sim.state.configuration import configuration_of
from pandomq.sim.state.kept_state import CONFIGURATION, NUMBERS, STARTS, Section, difference, kept_state, restored
from pandomq.sim.state.live_state import find_difference, live_state

if TYPE_CHECKING:
    from pandomq.broker.broker import Broker
    from pandomq.broker.queues.queue import Queue
    from pandomq.broker.streams.stream import Stream
    from pandomq.sim.machine import Machine

PROMISE: Final = "all brokers have the same state"


def are_level(machines: Sequence[Machine], root: Machine) -> bool:
    """Whether every broker has everything that the root has."""
    if root.replica is None or not root.serving:
        return False
    assert root.node is not None
    if not root.node.broker.at_rest:
        return False
    # A client that has left another broker may not have left the root yet.
    if any(queue.kernel.unacked_count for queue in _shared(root.node.broker).values()):
        return False
    return all(_has_all(machine, root.journal.last_index) for machine in machines)


def _has_all(machine: Machine, last_index: int) -> bool:
    replica = machine.replica
    if replica is None or machine.node is None or replica.commit_index < last_index:
        return False
    view = replica.view()
    if machine.node.peers.life.state in (BrokerState.HANDED_OVER, BrokerState.RESTARTING):
        # After a hand-over the log of the old root follows, but its broker does not until it has restarted.
        return False
    disk = machine.node._disk
    assert disk is not None
    behind = not machine.node.peers.life.took_over and disk.applier.behind
    return not ((view.joining and not machine.secondary) or view.repairing or behind)


def check(machines: Sequence[Machine], root: Machine, *, alone_since: int | None = None) -> None:
    """`alone_since` is the first term in which a root was the only member, if there was one."""
    assert root.node is not None
    kept = _promised(kept_state(root.node.broker), alone_since)
    for machine in machines:
        if machine is root:
            continue
        assert machine.node is not None and root.node is not None
        ours, theirs = configuration_of(root.node.broker), configuration_of(machine.node.broker)
        if ours != theirs:
            raise BrokenPromise(PROMISE, f"on {machine.name} {ours.difference(theirs)}")
        mine, others = _shared(root.node.broker), _shared(machine.node.broker)
        if sorted(mine) != sorted(others):
            raise BrokenPromise(PROMISE, f"{machine.name} has the queues {sorted(others)}, the root {sorted(mine)}")
        for name, queue in mine.items():
            if machine.secondary:
                _check_empty(machine.name, others[name])
            else:
                _compare(machine.name, queue, others[name])
        only = CONFIGURATION if machine.secondary else ()
        text = difference(kept, _promised(kept_state(machine.node.broker), alone_since), only=only)
        if text is None and not machine.secondary:
            text = _difference_of_live(root.node.broker, machine.node.broker)
        if text is not None:
            raise BrokenPromise(PROMISE, f"the state of {machine.name} differs from the root's: {text}")


def _promised(kept: dict[str, Section], alone_since: int | None) -> dict[str, Section]:
    """Returns the part of the state that is equal on all brokers. A root that is the only member gives numbers to
    transient messages, which are in no entry. Its snapshots hold these numbers, so after a restart its queues continue
    behind them, while a broker that has applied the entries knows lower ones. The numbers at which later terms begin
    differ by the same messages. The terms up to that root's own began while every number was in an entry."""
    if alone_since is None:
        return kept
    starts: Section = {
        term: firsts for term, firsts in kept[STARTS].items() if isinstance(term, int) and term <= alone_since
    }
    return {**kept, NUMBERS: {}, STARTS: starts}


def check_restored(root: Machine) -> None:
    """A broker that is restored from a snapshot of the root has the root's state."""
    assert root.node is not None
    broker = root.node.broker
    other = restored(broker)
    text = difference(kept_state(broker), kept_state(other)) or _difference_of_live(broker, other)
    if text is not None:
        raise BrokenPromise(PROMISE, f"the state restored from a snapshot differs from the root's: {text}")


def _difference_of_live(root: Broker, other: Broker) -> str | None:
    ours, theirs = live_state(root), live_state(other)
    for number, (_, owner) in root.state.logged.items():
        paged = owner.kernel.pages() or number not in other.state.logged or other.state.logged[number][1].kernel.pages()
        if paged:
            # `kept_state` compares the messages that are on pages.
            ours["messages"].pop(number, None)
            theirs["messages"].pop(number, None)
    return find_difference(ours, theirs)


def _check_empty(who: str, queue: Queue) -> None:
    """Secondaries receive the configuration, and no message of shared queues."""
    if queue.kernel.ready_count:
        raise BrokenPromise(
            PROMISE, f"{who} is a secondary, and has {queue.kernel.ready_count} messages of {queue.name}"
        )


def _shared(broker: Broker) -> dict[str, Queue]:
    """Returns the queues that no connection owns; the queues that other brokers own at the root are not among them."""
    return {name: queue for name, queue in broker.state.vhosts["/"].queues.items() if queue.owner is None}


def _compare(who: str, ours: Queue, theirs: Queue) -> None:
    if ours.stream is not None and theirs.stream is not None:
        mine_of, theirs_of = _content(ours.stream), _content(theirs.stream)
        if mine_of != theirs_of:
            text = f"{ours.name} of {who} has the chunks {theirs_of[0]}, not {mine_of[0]}, or others in the last"
            raise BrokenPromise(PROMISE, text)
    if ours.is_local != theirs.is_local:
        raise BrokenPromise(
            PROMISE, f"{who} and the root disagree on whether the messages of {ours.name} are replicated"
        )
    if ours.is_local and theirs.kernel.ready_count:
        raise BrokenPromise(
            PROMISE, f"{who} has {theirs.kernel.ready_count} messages of {ours.name}, which only the root is to have"
        )
    if not ours.durable or ours.is_local or ours.kernel.pages() or theirs.kernel.pages():
        return
    mine, other = _held(ours), _held(theirs)
    if mine != other:
        only_here, only_there = sorted(mine - other)[:3], sorted(other - mine)[:3]
        raise BrokenPromise(
            PROMISE, f"{who} holds other messages in {ours.name}: it lacks {only_here}, and the root {only_there}"
        )


def _content(stream: Stream) -> tuple[list[tuple[int, int, int]], bytes]:
    """Returns the chunks, and the bytes of the chunk that is not sealed yet."""
    end = stream.committed_end
    rows = [(row.first_offset, row.last_offset, row.size_bytes) for row in stream.chunks(0, end, end + 1)]
    chunk = stream.open_chunk
    return rows, chunk.seal_rows(chunk.count) if chunk.count else b""


def _held(queue: Queue) -> set[tuple[int, int, bytes]]:
    return {
        (sequence, term, message.body.partition(b"|")[0])
        for sequence, term, *_, message in queue.kernel.snapshot()
        if read_property(message.header, "delivery_mode") == PERSISTENT
    }
