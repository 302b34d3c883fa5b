"""Replies, and other promises, that must not be given before the log has what they speak of.

A reply whose handler changed shared state waits until the batch's entry is committed, and later replies on its
channel wait behind it; the kernel keeps the channel's deliveries back meanwhile, and the confirms of later publishes.
Entries are committed in order, so one line of replies for the whole broker is enough, and within it a channel's
replies stay in order.
"""

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pandomq.broker.channel import Channel
    from pandomq.kernel import Message


class HeldReply:
    __slots__ = ("channel", "content", "index", "octets")

    def __init__(self, channel: "Channel", octets: bytes, content: "Message | None") -> None:
        self.channel = channel
        self.octets = octets
        """A whole frame, or the payload of a method whose content follows."""
        self.content = content
        self.index = 0

    @property
    def size_bytes(self) -> int:
        return len(self.octets) + (0 if self.content is None else self.content.body_size)

    def give(self) -> None:
        self.channel.send_held(self)


class HeldCall:
    """Somebody inside the process who waits for the commit."""

    __slots__ = ("_on_committed", "index")

    def __init__(self, on_committed: Callable[[], None]) -> None:
        self._on_committed = on_committed
        self.index = 0

    def give(self) -> None:
        self._on_committed()


class HeldReplies:
    __slots__ = ("_commands_in_batch", "_line", "_unsealed", "commands_index", "committed_index", "sealed_index")

    def __init__(self) -> None:
        self._unsealed: list[HeldReply | HeldCall] = []
        self._line: deque[HeldReply | HeldCall] = deque()
        self._commands_in_batch = False
        self.sealed_index = 0
        self.commands_index = 0
        """Of the last entry that changed shared state."""
        self.committed_index = 0

    def command_logged(self) -> None:
        self._commands_in_batch = True

    @property
    def commands_uncommitted(self) -> bool:
        """Shared state has changed in a way that could still be lost: who speaks of it must wait."""
        return self._commands_in_batch or self.commands_index > self.committed_index

    def hold(self, channel: "Channel", octets: bytes, content: "Message | None" = None) -> None:
        """The reply waits for this batch's entry; if the batch writes none, for the last one before it."""
        reply = HeldReply(channel, octets, content)
        self._unsealed.append(reply)
        channel.client.held_bytes += reply.size_bytes
        channel.held_count += 1
        channel.kernel.hold()

    def call_when_committed(self, on_committed: Callable[[], None]) -> None:
        self._unsealed.append(HeldCall(on_committed))

    @property
    def is_unsealed(self) -> bool:
        """Somebody waits for the end of the batch to know what to wait for."""
        return bool(self._unsealed)

    def sealed(self, index: int) -> None:
        if index:
            self.sealed_index = index
            if self._commands_in_batch:
                self.commands_index = index
        self._commands_in_batch = False
        if self._unsealed:
            for reply in self._unsealed:
                reply.index = self.sealed_index
            self._line.extend(self._unsealed)
            self._unsealed.clear()
            self._release()

    def committed(self, index: int) -> None:
        self.committed_index = max(self.committed_index, index)
        if self._line:
            self._release()

    def replayed(self, index: int) -> None:
        """An entry that another broker wrote, or this one in an earlier life, was applied."""
        self.sealed_index = self.commands_index = self.committed_index = index

    def _release(self) -> None:
        line = self._line
        while line and line[0].index <= self.committed_index:
            line.popleft().give()

    def __len__(self) -> int:
        return len(self._line) + len(self._unsealed)
