"""Marks a numbered publish with its user, for the brokers that have private queues for it.

They remember numbers of producers, too (`cluster.proxy.numbers_seen`), and a producer is a name of a user. A message in
an outlet has the user in its first header, which the broker at the other end removes. A client's own header of that
name comes behind it, and has no effect.
"""

from typing import Final

from pandomq import kernel
from pandomq.broker.publishing.content_header import entries_of, spans_of, with_headers
from pandomq.fieldtable import encode_table

_NAME: Final = "x-pandomq-user"
_START: Final = bytes((len(_NAME),)) + _NAME.encode() + b"S"
_LENGTH_BYTES: Final = 4


def marked(message: kernel.Message, user: str) -> kernel.Message:
    """The message with its user as a header; it has headers."""
    spans = spans_of(message.header)
    entries = encode_table({_NAME: user})[_LENGTH_BYTES:] + entries_of(message.header, spans)
    return _with_entries(message, entries)


def unmarked(message: kernel.Message) -> tuple[str, kernel.Message]:
    """Its user, and the message as it was published. Without a mark it has no user: a broker of version 0.1.0 has sent
    it."""
    entries = entries_of(message.header, spans_of(message.header))
    if not entries.startswith(_START):
        return "", message
    begin = len(_START) + _LENGTH_BYTES
    end = begin + int.from_bytes(entries[len(_START) : begin], "big")
    return entries[begin:end].decode("utf-8", "surrogateescape"), _with_entries(message, entries[end:])


def _with_entries(message: kernel.Message, entries: bytes) -> kernel.Message:
    header = with_headers(message.header, spans_of(message.header), entries, keep_expiration=True)
    other = kernel.Message(message.routing, header, message.body)
    other.producer, other.number, other.suspect = message.producer, message.number, message.suspect
    return other
