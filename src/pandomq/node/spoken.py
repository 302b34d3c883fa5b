"""What is said to other brokers, as octets. Backups that keep up are told the same, so it is encoded once for all."""

from pandomq.replica.messages import Message, encode


class Spoken:
    __slots__ = ("_data", "_message", "_sends")

    def __init__(self) -> None:
        self._message: Message | None = None
        self._data = b""
        self._sends: list[tuple[str, bytes]] = []

    def say(self, peer: str, message: Message) -> None:
        # Their entries are the same objects, so that comparing them takes no time.
        if message != self._message:
            self._message, self._data = message, encode(message)
        self._sends.append((peer, self._data))

    def take(self) -> list[tuple[str, bytes]]:
        """Whole messages for peers, in order."""
        sends, self._sends = self._sends, []
        return sends
