"""Bugs of the broker on its log: promises that come too early, records that are not written, states that come back
with something missing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pandomq import kernel
from pandomq.broker.broker import Broker, Outcome
from pandomq.broker.commands import Command, PutPermissions, UnbindQueue, decode_command
from pandomq.broker.held_replies import HeldReplies
from pandomq.broker.producers import Producers
from pandomq.broker.revival import Revival
from pandomq.broker.snapshot import Snapshot
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
from pandomq.node.disk_log import DiskLog
from pandomq.sim.mutations.mutation import Mutation, Patch

ALL_INDEXES: Final = 2**63
"""More than any log has."""


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
    sync = DiskLog.sync

    def hasty(log: DiskLog) -> None:
        sync(log)
        log._broker.committed(log._journal.last_index)

    patch.set(DiskLog, "sync", hasty)


def _unlogged(unwanted: Callable[[Record], bool]) -> Callable[[Patch], None]:
    """Records of some kind are not written."""

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
            log.sync()
            records = records[half:]
        return append(log, _encode(decoded.now_ms, records), prompt=prompt)

    patch.set(DiskLog, "append", in_two)


def _forget_time(patch: Patch) -> None:
    patch.set(DiskLog, "last_ms", property(lambda log: 0))


def _answer_early(patch: Patch) -> None:
    sealed = HeldReplies.sealed

    def hasty(held: HeldReplies, index: int) -> None:
        sealed(held, index)
        held.committed(held.sealed_index)

    patch.set(HeldReplies, "sealed", hasty)


def _skip(name: str) -> Callable[[Patch], None]:
    def nothing(snapshot: Snapshot, broker: Broker) -> None:
        """Leaves it out."""

    return lambda patch: patch.set(Snapshot, name, nothing)


def _claim_exact(patch: Patch) -> None:
    make = Snapshot.__init__

    def boastful(snapshot: Snapshot, broker: Broker, *, exact: bool) -> None:
        make(snapshot, broker, exact=True)

    patch.set(Snapshot, "__init__", boastful)


def _trust_all(patch: Patch) -> None:
    finish = Revival.finish

    def trusting(revival: Revival, now_ms: int, *, takeover: bool = False, handed_over: bytes | None = None) -> None:
        revival._exact = True
        finish(revival, now_ms, takeover=takeover, handed_over=handed_over)

    patch.set(Revival, "finish", trusting)


def _keep_passing(patch: Patch) -> None:
    def nothing(revival: Revival, vhost: Vhost) -> None:
        """Leaves them all."""

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

    def hasty(broker: Broker, now_ms: int) -> Outcome:
        # While messages are delivered all that was written counts as safe.
        known[broker] = broker.engine.commit_index
        broker.engine.commit_index = ALL_INDEXES
        return finish(broker, now_ms)

    def delivered(producers: Producers, channels: list[kernel.Channel]) -> None:
        # Confirms, which come next, are given when they should be.
        broker = producers._broker
        broker.engine.commit_index = known.pop(broker)
        note(producers, channels)

    patch.set(Broker, "_finish", hasty)
    patch.set(Producers, "note", delivered)


MUTATIONS: Final = (
    Mutation("confirm-before-sync", "what was appended counts as committed at once", _confirm_early),
    Mutation("answer-before-commit", "declare-ok and commit-ok do not wait for the log", _answer_early),
    Mutation("ack-not-logged", "dequeues are not written", _unlogged(lambda record: isinstance(record, DequeueRecord))),
    Mutation("unbind-not-logged", "an unbind is done and not written", _unlogged(_is_command(UnbindQueue)), churn=True),
    Mutation("permission-not-logged", "a permission is given and not written", _unlogged(_is_command(PutPermissions))),
    Mutation("entry-in-two", "a batch, and so a transaction, is written as two entries", _split_entries),
    Mutation("time-forgotten", "after a restart the wall clock says what is over, not the log", _forget_time),
    Mutation("snapshot-without-unacked", "what consumers hold is not in the snapshot", _skip("_note_unacked")),
    Mutation("snapshot-without-admissions", "transactions under way are not in it", _skip("_note_awaited")),
    Mutation("snapshot-always-exact", "a snapshot claims that nothing was delivered since", _claim_exact),
    Mutation("redelivered-not-said", "a restart forgets that messages may have been delivered", _trust_all),
    Mutation("passing-kept", "queues that are not durable come back", _keep_passing),
    Mutation("first-entry-skipped", "the entry after the snapshot is not applied", _skip_first),
    Mutation("unseen-passed", "others overtake a message that left unseen before the log knows", _pass_unseen),
    Mutation("transaction-seen-early", "a transaction is visible before the log has it", _call_at_once),
)
