"""Replies that must not leave before the log has what they promise.

A reply whose handler changed shared state waits until the batch's entry is committed, and later replies on its
channel wait behind it; the kernel keeps the channel's deliveries back meanwhile. Entries are committed in order, so
one line of replies for the whole broker is enough, and within it a channel's replies stay in order.
"""

from collections import deque
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


class HeldReplies:
    __slots__ = ("_commands_in_batch", "_line", "_unsealed", "commands_index", "committed_index", "sealed_index")

    def __init__(self) -> None:
        self._unsealed: list[HeldReply] = []
        self._line: deque[HeldReply] = deque()
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
        self._unsealed.append(HeldReply(channel, octets, content))
        channel.held_count += 1
        if channel.held_count == 1:
            channel.kernel.hold()

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
            reply = line.popleft()
            reply.channel.send_held(reply)

    def __len__(self) -> int:
        return len(self._line) + len(self._unsealed)
