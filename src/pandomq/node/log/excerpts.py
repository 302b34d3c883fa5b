"""The part of an entry that a secondary gets: its commands, which are the configuration, and no messages.

A secondary also gets nothing else that the log stores about messages, about producers that number their publishes or
leases of queues, and no queues that brokers with messages have for themselves: only the root needs that.
"""

from __future__ import annotations

from typing import Final, get_args

from pandomq import kernel
from pandomq.broker.log.commands import DeclareQueue, DeleteQueue, MessageCommand, begins, decode_command, is_inner
from pandomq.kernel.records import ENTRY_START, VERSION, BadEntry, CommandRecord, decode_entry
from pandomq.kernel.records import encode_command as encode_record

_OF_MESSAGES: Final = tuple(start for kind in get_args(MessageCommand) for start in begins(kind))
_OF_QUEUES: Final = (*begins(DeclareQueue), *begins(DeleteQueue))
_DOUBTFUL: Final = _OF_MESSAGES + _OF_QUEUES
"""The first bytes of commands that may be no configuration."""


class Commands:
    """`replica.protocol.excerpts.Excerpts`."""

    def of(self, payload: bytes) -> bytes:
        try:
            excerpt = kernel.without_messages(payload)
        except BadEntry:
            # A payload of unknown version: the broker that applies it will report that.
            return payload
        return _configuration(excerpt) if any(start in excerpt for start in _DOUBTFUL) else excerpt

    def is_empty(self, excerpt: bytes) -> bool:
        """The excerpt has only the time."""
        return len(excerpt) <= ENTRY_START.size


def _configuration(excerpt: bytes) -> bytes:
    entry = decode_entry(excerpt)
    commands = [record.command for record in entry.records if isinstance(record, CommandRecord)]
    kept = [encode_record(command) for command in commands if _is_configuration(command)]
    return ENTRY_START.pack(VERSION, entry.now_ms, len(kept)) + b"".join(kept)


def _is_configuration(command: bytes) -> bool:
    if command.startswith(_OF_MESSAGES):
        return False
    return not (command.startswith(_OF_QUEUES) and is_inner(decode_command(command)))
