"""Replies, and other promises, that must not be sent before the log has the changes that they report.

A reply whose handler changed shared state waits until the batch's entry is committed, and later replies on its channel
wait behind it; the kernel holds the channel's deliveries back meanwhile, and the confirms of later publishes. Entries
are committed in order, so one line of replies for the whole broker is enough, and within it a channel's replies stay in
order.

A reply about shared state also waits until the last change of that is in force on every broker that serves clients
(R16). Those form a second line, so that nothing else waits with them except what follows them on their channels:
replies, returns, and confirms.
"""

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pandomq.broker.channel import Channel
    from pandomq.kernel import Message

EVERYTHING: Final = 2**63 - 1
"""An index above all others."""


class HeldReply:
    __slots__ = ("channel", "content", "index", "octets", "published", "shared", "shared_index")

    def __init__(self, channel: "Channel", octets: bytes, content: "Message | None", *, shared: bool) -> None:
        self.channel = channel
        self.shared = shared
        """Whether the reply is about state that all brokers share."""
        self.octets = octets
        """A whole frame, or the payload of a method whose content follows."""
        self.content = content
        self.published: int = channel.held_after
        """The number of a publish before the reply: later ones are confirmed after it."""
        self.index = self.shared_index = 0

    @property
    def size_bytes(self) -> int:
        return len(self.octets) + (0 if self.content is None else self.content.body_size)

    def give(self) -> None:
        self.channel.send_held(self)


class HeldCall:
    """A caller inside the process that waits for the commit."""

    __slots__ = ("_on_committed", "index", "shared", "shared_index")
    channel: "Final[Channel | None]" = None

    def __init__(self, on_committed: Callable[[], None], *, shared: bool = False) -> None:
        self._on_committed = on_committed
        self.shared = shared
        self.index = self.shared_index = 0

    def give(self) -> None:
        self._on_committed()


class HeldReplies:
    __slots__ = (
        "_commands_in_batch",
        "_line",
        "_second_line",
        "_second_line_channels",
        "_unsealed",
        "applied_index",
        "commands_index",
        "committed_index",
        "publish_wait_count",
        "publishes_wait",
        "sealed_index",
    )

    def __init__(self) -> None:
        self._unsealed: list[HeldReply | HeldCall] = []
        self._line: deque[HeldReply | HeldCall] = deque()
        self._second_line: deque[tuple[int, HeldReply | HeldCall]] = deque()
        """Committed replies and calls; each with the index that has to be applied, which never falls."""
        self._second_line_channels: dict[Channel, deque[int]] = {}
        """By channel, the publishes before the replies that it has there; the kernel confirms none after the first."""
        self._commands_in_batch = False
        self.sealed_index = 0
        self.commands_index = 0
        """The index of the last entry that changed shared state."""
        self.committed_index = 0
        self.applied_index = EVERYTHING
        """Changes up to this index are in force wherever clients are served."""
        self.publishes_wait = False
        """Publishes are held back, too: other brokers may have private queues that are not bound here yet. And no
        consumer begins: other brokers may know of acks that were lost with the last root."""
        self.publish_wait_count = 0
        """How often publishes began to wait."""

    def let_publishes_wait(self, *, wait: bool) -> None:
        if wait and not self.publishes_wait:
            self.publish_wait_count += 1
        self.publishes_wait = wait

    def command_logged(self) -> None:
        self._commands_in_batch = True

    @property
    def commands_unsettled(self) -> bool:
        """Shared state has changed in a way that could still be lost, or is not known everywhere: replies about it must
        wait."""
        return self._commands_in_batch or self.commands_index > min(self.committed_index, self.applied_index)

    @property
    def settled_index(self) -> int:
        """Clients may have got replies about changes up to this entry, unless some broker was known to lack them."""
        return min(self.commands_index, self.committed_index)

    def hold(
        self, channel: "Channel", octets: bytes, content: "Message | None" = None, *, shared: bool = False
    ) -> None:
        """The reply waits for this batch's entry; if the batch writes none, for the last one before it."""
        if content is None or not channel.held_count:
            # A returned message was published before, but its confirm must come after it: it counts with the last
            # reply.
            channel.held_after = channel.kernel.published_count
        reply = HeldReply(channel, octets, content, shared=shared)
        self._unsealed.append(reply)
        channel.client.held_bytes += reply.size_bytes
        channel.held_count += 1
        channel.kernel.hold()

    def call_when_committed(self, on_committed: Callable[[], None]) -> None:
        self._unsealed.append(HeldCall(on_committed))

    def call_when_settled(self, on_settled: Callable[[], None]) -> None:
        """Like `call_when_committed`, for a caller that needs shared state."""
        self._unsealed.append(HeldCall(on_settled, shared=True))

    @property
    def is_unsealed(self) -> bool:
        """A caller waits for the end of the batch to learn which index to wait for."""
        return bool(self._unsealed)

    def sealed(self, index: int) -> None:
        if index:
            self.sealed_index = index
            if self._commands_in_batch:
                self.commands_index = index
        self._commands_in_batch = False
        if self._unsealed:
            for held in self._unsealed:
                held.index = self.sealed_index
                held.shared_index = self.commands_index if held.shared else 0
            self._line.extend(self._unsealed)
            self._unsealed.clear()
            self._release()

    def committed(self, index: int) -> None:
        self.committed_index = max(self.committed_index, index)
        if self._line:
            self._release()

    def applied_everywhere(self, index: int) -> None:
        """Changes up to this entry are in force wherever clients are served. It may fall: a broker that begins to serve
        has everything that was settled before."""
        self.applied_index = index
        if self._second_line:
            self._release_second()

    def replayed(self, index: int) -> None:
        """An entry that another broker wrote, or this one before a restart, was applied."""
        self.sealed_index = self.commands_index = self.committed_index = index

    def _release(self) -> None:
        line = self._line
        while line and line[0].index <= self.committed_index:
            held = line.popleft()
            unsettled = held.shared_index and held.shared_index > self.applied_index
            if unsettled or held.channel in self._second_line_channels:
                self._put_in_second(held)
            else:
                held.give()

    def _put_in_second(self, held: HeldReply | HeldCall) -> None:
        before = self._second_line[-1][0] if self._second_line else 0
        self._second_line.append((max(before, held.shared_index), held))
        if isinstance(held, HeldReply):
            waiting = self._second_line_channels
            if held.channel not in waiting:
                waiting[held.channel] = deque()
                held.channel.kernel.hold_confirms(held.published + 1)
            waiting[held.channel].append(held.published)

    def _release_second(self) -> None:
        line, waiting = self._second_line, self._second_line_channels
        while line and line[0][0] <= self.applied_index:
            _, held = line.popleft()
            if not isinstance(held, HeldReply):
                held.give()
                continue
            left = waiting[held.channel]
            left.popleft()
            if not left:
                del waiting[held.channel]
            held.give()
            held.channel.kernel.hold_confirms(left[0] + 1 if left else 0)

    def __len__(self) -> int:
        return len(self._line) + len(self._unsealed) + len(self._second_line)
