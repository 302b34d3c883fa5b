"""Bugs of the broker on its log: promises that are made too early, records that are not written, incomplete restored
state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pandomq import kernel
from pandomq.broker.broker import BatchOutcome, Broker
from pandomq.broker.log.commands import Command, PutPermissions, UnbindQueue, decode_command
from pandomq.broker.log.held_replies import HeldReplies
from pandomq.broker.log.revival import Revival
from pandomq.broker.log.snapshot import Snapshot
from pandomq.broker.publishing.producers import Producers
from pandomq.broker.vhost import Vhost
from pandomq.ids import LogIndex
from pandomq.kernel.records import (
    ENTRY_START,
    VERSION,
    CommandRecord,
    DequeueRecord,
    EnqueueRecord,
    Record,
    decode_entry,
    encode_command,
    encode_dequeue,
    encode_enqueue,
)
from pandomq.node.log.disk_log import DiskLog
from pandomq.node.node import Node
from tests.sim.planted.planted_bug import Patch, PlantedBug

ALL_INDEXES: Final = 2**63
"""An index above those of all logs."""


def _encode(now_ms: int, records: list[Record]) -> bytes:
    parts = [ENTRY_START.pack(VERSION, now_ms, len(records))]
    for record in records:
        match record:
            case EnqueueRecord(places, routing, header, body):
                parts.append(encode_enqueue(list(places), routing, header, body))
            case DequeueRecord(queue_id, sequence_first, count):
                parts.append(encode_dequeue(queue_id, sequence_first, count))
            case CommandRecord(command):
                parts.append(encode_command(command))
    return b"".join(parts)


def _confirm_early(patch: Patch) -> None:
    commit = Node._commit

    def hasty(node: Node, outcome: BatchOutcome) -> None:
        commit(node, outcome)
        if isinstance(node._log, DiskLog):
            node._broker.committed(node._log.last_index)

    patch.set(Node, "_commit", hasty)


def _unlogged(unwanted: Callable[[Record], bool]) -> Callable[[Patch], None]:
    """A bug that does not write some kinds of records."""

    def plant(patch: Patch) -> None:
        append = DiskLog.append

        def forgetful(log: DiskLog, entry: bytes, *, prompt: bool = False) -> LogIndex:
            decoded = decode_entry(entry)
            kept = [record for record in decoded.records if not unwanted(record)]
            return append(log, _encode(decoded.now_ms, kept), prompt=prompt)

        patch.set(DiskLog, "append", forgetful)

    return plant


def _is_command(kind: type[Command]) -> Callable[[Record], bool]:
    return lambda record: isinstance(record, CommandRecord) and isinstance(decode_command(record.command), kind)


def _split_entries(patch: Patch) -> None:
    append = DiskLog.append

    def in_two(log: DiskLog, entry: bytes, *, prompt: bool = False) -> LogIndex:
        decoded = decode_entry(entry)
        records = list(decoded.records)
        if len(records) > 1:
            half = len(records) // 2
            append(log, _encode(decoded.now_ms, records[:half]))
            records = records[half:]
        return append(log, _encode(decoded.now_ms, records), prompt=prompt)

    patch.set(DiskLog, "append", in_two)


def _forget_time(patch: Patch) -> None:
    patch.set(Node, "last_ms", property(lambda node: 0))


def _answer_early(patch: Patch) -> None:
    sealed = HeldReplies.sealed

    def hasty(held: HeldReplies, index: int) -> None:
        sealed(held, index)
        held.committed(held.sealed_index)

    patch.set(HeldReplies, "sealed", hasty)


def _skip(name: str) -> Callable[[Patch], None]:
    def nothing(snapshot: Snapshot, broker: Broker) -> None:
        """Leaves this part out."""

    return lambda patch: patch.set(Snapshot, name, nothing)


def _trust_all(patch: Patch) -> None:
    finish = Revival.finish

    def trusting(revival: Revival, now_ms: int, *, takeover: bool = False, handed_over: bytes | None = None) -> None:
        revival._exact = True
        finish(revival, now_ms, takeover=takeover, handed_over=handed_over)

    patch.set(Revival, "finish", trusting)


def _keep_passing(patch: Patch) -> None:
    def nothing(revival: Revival, vhost: Vhost) -> None:
        """Leaves all of them out."""

    patch.set(Revival, "_forget_passing", nothing)


def _skip_first(patch: Patch) -> None:
    apply = Revival.apply

    def skipping(revival: Revival, index: int, term: int, entry: bytes) -> None:
        if revival._broker.held.sealed_index or not revival._broker.now_ms:
            apply(revival, index, term, entry)
        else:
            revival._broker.held.replayed(index)

    patch.set(Revival, "apply", skipping)


def _call_at_once(patch: Patch) -> None:
    def hasty(held: HeldReplies, on_committed: Callable[[], None]) -> None:
        on_committed()

    patch.set(HeldReplies, "call_when_committed", hasty)


def _pass_unseen(patch: Patch) -> None:
    finish, note = Broker._finish, Producers.note
    known: dict[Broker, int] = {}

    def hasty(broker: Broker, now_ms: int) -> BatchOutcome:
        # During delivery all written entries count as durable.
        known[broker] = broker.engine.commit_index
        broker.engine.commit_index = ALL_INDEXES
        return finish(broker, now_ms)

    def delivered(producers: Producers, channels: list[kernel.Channel]) -> None:
        # Confirms, which come next, are given at the right time.
        broker = producers._broker
        broker.engine.commit_index = known.pop(broker)
        note(producers, channels)

    patch.set(Broker, "_finish", hasty)
    patch.set(Producers, "note", delivered)


PLANTED_BUGS: Final = (
    PlantedBug(
        "confirm-before-sync", "The log counts an entry as committed as soon as it is appended.", _confirm_early
    ),
    PlantedBug(
        "answer-before-commit", "The broker sends declare-ok and commit-ok without waiting for the log.", _answer_early
    ),
    PlantedBug(
        "ack-not-logged",
        "The broker does not write dequeues to the log.",
        _unlogged(lambda record: isinstance(record, DequeueRecord)),
    ),
    PlantedBug(
        "unbind-not-logged",
        "The broker executes an unbind and does not write it to the log.",
        _unlogged(_is_command(UnbindQueue)),
    ),
    PlantedBug(
        "permission-not-logged",
        "The broker grants a permission and does not write it to the log.",
        _unlogged(_is_command(PutPermissions)),
    ),
    PlantedBug("entry-in-two", "The broker writes a batch, and so a transaction, as two entries.", _split_entries),
    PlantedBug(
        "time-forgotten",
        "After a restart the broker decides what has expired by its wall clock, not by the log.",
        _forget_time,
    ),
    PlantedBug("snapshot-without-unacked", "A snapshot omits unacknowledged messages.", _skip("_note_unacked")),
    PlantedBug(
        "snapshot-without-admissions",
        "A snapshot omits transactions that wait for their commit.",
        _skip("_note_awaited"),
    ),
    PlantedBug(
        "redelivered-not-said",
        "After a restart the broker does not set `redelivered` on messages that may have been delivered.",
        _trust_all,
    ),
    PlantedBug("passing-kept", "Queues that are not durable return after a restart.", _keep_passing),
    PlantedBug("first-entry-skipped", "Recovery does not apply the first entry after the snapshot.", _skip_first),
    PlantedBug(
        "unseen-passed",
        "The broker delivers later messages before the log has that an earlier one left undelivered.",
        _pass_unseen,
    ),
    PlantedBug("transaction-seen-early", "A transaction is visible before the log has it.", _call_at_once),
)
