"""What a secondary gets of an entry: the commands in it, which are the configuration; and of none a message.

Nor does it get what the log remembers of those who number their publishes: only a root is asked for that.
"""

from __future__ import annotations

from typing import Final

from pandomq import kernel
from pandomq.broker.commands import NoteProducers, NoteSequences, encode_command
from pandomq.kernel.records import ENTRY_START, VERSION, BadEntry, CommandRecord, decode_entry
from pandomq.kernel.records import encode_command as encode_record

_NUMBERS: Final = (encode_command(NoteProducers(0, []))[:-2], encode_command(NoteSequences(0, []))[:-3])
"""How each such command begins: its shape and its name, and then comes what it says."""


class Commands:
    """`replica.excerpts.Excerpts`."""

    def of(self, payload: bytes) -> bytes:
        try:
            excerpt = kernel.without_messages(payload)
        except BadEntry:
            # Of a version that is not known here; whoever applies it will say so.
            return payload
        return _without_numbers(excerpt) if any(start in excerpt for start in _NUMBERS) else excerpt

    def is_empty(self, excerpt: bytes) -> bool:
        """All it has is the time."""
        return len(excerpt) <= ENTRY_START.size


def _without_numbers(excerpt: bytes) -> bytes:
    entry = decode_entry(excerpt)
    commands = [record.command for record in entry.records if isinstance(record, CommandRecord)]
    kept = [encode_record(command) for command in commands if not command.startswith(_NUMBERS)]
    return ENTRY_START.pack(VERSION, entry.now_ms, len(kept)) + b"".join(kept)
