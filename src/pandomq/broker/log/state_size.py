"""Computes the size of the shared state, and limits it to a maximum (R19).

The size is that of the commands which would make the state anew. The size of a new command is added at once; removals
make the sum too high, until it is counted again: when something would be refused, and not too often. Only the broker
that decides counts; others apply what its log has.
"""

from typing import TYPE_CHECKING, Final

from pandomq.broker.log.commands import (
    BindExchange,
    BindQueue,
    Command,
    DeclareExchange,
    DeclareQueue,
    PutLimits,
    PutPermissions,
    PutPolicy,
    PutTopicPermissions,
    PutTracing,
    PutUser,
    PutVhost,
    encode_command,
)
from pandomq.broker.log.state_commands import commands_of
from pandomq.errors import precondition_failed

if TYPE_CHECKING:
    from pandomq.broker.state import ReplicatedState

COUNT_MS: Final = 1_000
"""The time between two counts: each takes as long as a snapshot of the state."""

GROWING: Final = (
    BindExchange,
    BindQueue,
    DeclareExchange,
    DeclareQueue,
    PutLimits,
    PutPermissions,
    PutPolicy,
    PutTopicPermissions,
    PutTracing,
    PutUser,
    PutVhost,
)


class StateSize:
    __slots__ = ("_counted_ms", "_exact", "_size_bytes", "_state")

    def __init__(self, state: "ReplicatedState") -> None:
        self._state = state
        self._size_bytes = 0
        self._exact = False
        """Whether nothing was removed since the last count."""
        self._counted_ms = -COUNT_MS

    def check(self, command: Command, more_bytes: int, limit_bytes: int, now_ms: int) -> None:
        """Raises ChannelFault (406) if the state would be too large with this command, which takes so many bytes."""
        if not limit_bytes or not isinstance(command, GROWING):
            return
        may_count = not self._exact and now_ms - self._counted_ms >= COUNT_MS
        if may_count and (self._counted_ms < 0 or self._size_bytes + more_bytes > limit_bytes):
            self._size_bytes = sum(len(encode_command(known)) for known in commands_of(self._state))
            self._exact, self._counted_ms = True, now_ms
        if self._size_bytes + more_bytes > limit_bytes:
            raise precondition_failed(
                f"configuration_bytes_max ({limit_bytes} bytes) is reached: delete queues, bindings, users or "
                "policies, or raise it"
            )

    def issued(self, command: Command, size_bytes: int) -> None:
        if isinstance(command, GROWING):
            self._size_bytes += size_bytes
        if not isinstance(command, BindExchange | BindQueue | DeclareExchange | DeclareQueue):
            # The command removes or replaces something.
            self._exact = False
