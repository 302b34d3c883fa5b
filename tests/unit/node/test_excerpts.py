"""Of an entry a secondary gets the commands that are configuration, and nothing else."""

from __future__ import annotations

import msgspec
import pytest

from pandomq.broker.log.commands import (
    Command,
    DeclareQueue,
    DeleteQueue,
    FinishBatch,
    ForgetLease,
    LeaseMessages,
    NoteProducers,
    NoteSequences,
    PutLease,
    ReturnLeased,
    StoreOffset,
    encode_command,
)
from pandomq.kernel.records import ENTRY_START, VERSION, encode_dequeue, encode_enqueue
from pandomq.kernel.records import encode_command as encode_record
from pandomq.node.log.excerpts import Commands

DELETE = encode_record(encode_command(DeleteQueue("/", "q")))
NUMBERS = encode_record(encode_command(NoteProducers(1_700_000_000_000, [(2**62, 7), (3, 1)])))
MESSAGE = encode_enqueue([(1, 2)], b"r", b"h", b"body")


def entry_of(*records: bytes) -> bytes:
    return ENTRY_START.pack(VERSION, 5, len(records)) + b"".join(records)


def test_messages_and_numbers_of_publishes_are_left_out() -> None:
    excerpts = Commands()
    assert excerpts.of(entry_of(MESSAGE, NUMBERS, DELETE, encode_dequeue(1, 2, 1))) == entry_of(DELETE)
    assert excerpts.of(entry_of(DELETE)) == entry_of(DELETE)
    assert not excerpts.is_empty(entry_of(DELETE))
    declare = encode_record(encode_command(DeclareQueue("/", "q", 5, True, False, b"", "guest", 7)))
    assert excerpts.of(entry_of(declare, DELETE)) == entry_of(declare, DELETE)


@pytest.mark.parametrize(
    "command",
    [
        NoteSequences(5, []),
        StoreOffset("/", "s", "me", 3),
        FinishBatch("/", "query", 1),
        PutLease("/", "q", "job", 10, 1000),
        LeaseMessages("/", "q", "job", [(1, 5, 2**62, 0, 100)]),
        ReturnLeased("/", "q", "job", 12, [(1, 2**62, 1, b"r", b"h", b"b")]),
        ForgetLease("/", "q", "job"),
        DeclareQueue("/", "pandomq.lease.job.q", 5, True, False, b"", "guest", 7, True),
        DeleteQueue("/", "pandomq.lease.job.q", True),
    ],
)
def test_other_commands_about_messages_are_left_out_too(command: Command) -> None:
    record = encode_record(encode_command(command))
    assert Commands().of(entry_of(DELETE, record, MESSAGE)) == entry_of(DELETE)
    assert Commands().of(entry_of(record)) == entry_of()


@pytest.mark.parametrize(
    "old",
    [
        ["staged-batch", "/", "w", 4, [], 7],
        ["staged-batch", "/", "w", 4, [], 7, []],
        ["sequences", 7, []],
        ["sequences", 7, [], []],
        ["returned", "/", "q", "job", 12, []],
        ["no-queue", "/", "pandomq.lease.job.q", True],
    ],
)
def test_commands_of_older_versions_about_messages_are_left_out(old: list[object]) -> None:
    record = encode_record(msgspec.msgpack.encode(old))
    assert Commands().of(entry_of(DELETE, record)) == entry_of(DELETE)


def test_nothing_but_the_time_may_be_left() -> None:
    excerpts = Commands()
    for entry in (entry_of(), entry_of(MESSAGE), entry_of(MESSAGE, NUMBERS)):
        assert excerpts.of(entry) == entry_of()
        assert excerpts.is_empty(excerpts.of(entry))


def test_a_record_of_a_later_version_is_passed_on_as_it_is() -> None:
    strange = bytes((VERSION + 1,)) + b"whatever it is"
    assert Commands().of(strange) == strange
