"""When nothing happens any more all brokers hold the same: configuration, and messages that the log keeps (P8)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from pandomq.properties import PERSISTENT, read_property
from pandomq.sim.configuration import configuration_of
from pandomq.sim.ledger import BrokenPromise

if TYPE_CHECKING:
    from pandomq.broker.broker import Broker
    from pandomq.broker.queue import Queue
    from pandomq.broker.streams.stream import Stream
    from pandomq.sim.machine import Machine

PROMISE: Final = "all brokers hold the same"


def are_level(machines: Sequence[Machine], root: Machine) -> bool:
    """Whether everybody has all that the root has."""
    if root.replica is None or not root.serving:
        return False
    assert root.node is not None
    # Whoever has left another broker may still be about to leave the root.
    if any(queue.kernel.unacked_count for queue in _shared(root.node.broker).values()):
        return False
    return all(_has_all(machine, root.journal.last_index) for machine in machines)


def _has_all(machine: Machine, last_index: int) -> bool:
    replica = machine.replica
    if replica is None or machine.node is None or replica.commit_index < last_index:
        return False
    view = replica.view()
    if machine.node.peers.lingering is not None:
        # It has handed over: its log follows, its broker does not.
        return False
    disk = machine.node._disk
    assert disk is not None
    behind = not machine.node.peers.in_office and disk._applier.behind
    return not ((view.joining and not machine.secondary) or view.repairing or behind)


def check(machines: Sequence[Machine], root: Machine) -> None:
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


def _check_empty(who: str, queue: Queue) -> None:
    """Secondaries get the configuration, and of shared queues no message."""
    if queue.kernel.ready_count:
        raise BrokenPromise(
            PROMISE, f"{who} is a secondary, and has {queue.kernel.ready_count} messages of {queue.name}"
        )


def _shared(broker: Broker) -> dict[str, Queue]:
    """Not what a connection owns, such as what other brokers have at the root."""
    return {name: queue for name, queue in broker.state.vhosts["/"].queues.items() if queue.owner is None}


def _compare(who: str, ours: Queue, theirs: Queue) -> None:
    if ours.stream is not None and theirs.stream is not None:
        mine_of, theirs_of = _content(ours.stream), _content(theirs.stream)
        if mine_of != theirs_of:
            text = f"{ours.name} of {who} has the chunks {theirs_of[0]}, not {mine_of[0]}, or others in the last"
            raise BrokenPromise(PROMISE, text)
    if not ours.durable or ours.kernel.pages() or theirs.kernel.pages():
        return
    mine, other = _held(ours), _held(theirs)
    if mine != other:
        only_here, only_there = sorted(mine - other)[:3], sorted(other - mine)[:3]
        raise BrokenPromise(
            PROMISE, f"{who} holds other messages in {ours.name}: it lacks {only_here}, and the root {only_there}"
        )


def _content(stream: Stream) -> tuple[list[tuple[int, int, int]], bytes]:
    """Chunks, and the bytes of the one that grows."""
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
