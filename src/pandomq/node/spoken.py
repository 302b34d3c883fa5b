"""The octets of what is said to other brokers. Backups that keep up are told the same, so they are made once for all."""

from pandomq.replica.messages import Message, encode


class Spoken:
    __slots__ = ("_data", "_message")

    def __init__(self) -> None:
        self._message: Message | None = None
        self._data = b""

    def encode(self, message: Message) -> bytes:
        # Their entries are the same objects, so that comparing them takes no time.
        if message != self._message:
            self._message, self._data = message, encode(message)
        return self._data
