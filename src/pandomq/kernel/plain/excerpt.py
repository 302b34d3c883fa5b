"""A log entry without its messages."""

from pandomq.kernel.records import ENTRY_START, VERSION, CommandRecord, decode_entry, encode_command


def without_messages(entry: bytes) -> bytes:
    decoded = decode_entry(entry)
    commands = [encode_command(record.command) for record in decoded.records if isinstance(record, CommandRecord)]
    return ENTRY_START.pack(VERSION, decoded.now_ms, len(commands)) + b"".join(commands)
