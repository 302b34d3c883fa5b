"""How large what all brokers share is, and that it does not outgrow its maximum (R19).

The size is that of the commands which would make the state anew. What is issued is added to it at once; what goes makes
it too high, until it is counted again: when something would be refused, and not more than once in a while. Only the
broker that decides counts; others do what its log says.
"""

from typing import TYPE_CHECKING, Final

from pandomq.broker.commands import (
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
from pandomq.broker.state_commands import commands_of
from pandomq.errors import precondition_failed

if TYPE_CHECKING:
    from pandomq.broker.state import State

COUNT_MS: Final = 1_000
"""Between two counts: each takes as long as a snapshot of the state."""

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

    def __init__(self, state: "State") -> None:
        self._state = state
        self._size_bytes = 0
        self._exact = False
        """Nothing went since it was counted."""
        self._counted_ms = -COUNT_MS

    def check(self, command: Command, limit_bytes: int, now_ms: int) -> None:
        """Raises ChannelFault (406) if the state would be too large with what this command brings."""
        if not limit_bytes or not isinstance(command, GROWING):
            return
        more_bytes = len(encode_command(command))
        may_count = not self._exact and now_ms - self._counted_ms >= COUNT_MS
        if may_count and (self._counted_ms < 0 or self._size_bytes + more_bytes > limit_bytes):
            self._size_bytes = sum(len(encode_command(known)) for known in commands_of(self._state))
            self._exact, self._counted_ms = True, now_ms
        if self._size_bytes + more_bytes > limit_bytes:
            raise precondition_failed(
                f"the cluster's configuration would take more than configuration_bytes_max ({limit_bytes} bytes)"
            )

    def issued(self, command: Command, size_bytes: int) -> None:
        if isinstance(command, GROWING):
            self._size_bytes += size_bytes
        if not isinstance(command, BindExchange | BindQueue | DeclareExchange | DeclareQueue):
            # It removes something, or replaces what was there.
            self._exact = False
