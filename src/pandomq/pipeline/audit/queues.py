"""Queues in the log and in snapshots: their names, and the ways in which messages may leave them without a consumer."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from pandomq.broker.administration.pattern_syntax import PatternError
from pandomq.broker.administration.patterns import compile_pattern
from pandomq.broker.log.commands import (
    Command,
    DeclareExchange,
    DeclareQueue,
    DeleteExchange,
    DeleteQueue,
    DeleteVhost,
    PutLease,
    PutPolicy,
    UnbindExchange,
    UnbindQueue,
    decode_command,
)
from pandomq.fieldtable import decode_table

_DROPPING: Final = ("message-ttl", "expires", "max-length", "max-length-bytes", "last-value-key")
_BY_LENGTH: Final = ("max-length", "max-length-bytes")
_DELAYED: Final = "x-delayed-message"


@dataclass
class QueueTraits:
    vhost: str
    name: str
    durable: bool
    drops: bool = False
    """Messages may leave it without a consumer: too old, too many, out of date."""
    limits_deliveries: bool = False
    by_priority: bool = False
    stream: bool = False
    leased: bool = False
    deleted: bool = False
    inner: bool = False


@dataclass
class QueueCatalogue:
    queues: dict[int, QueueTraits] = field(default_factory=dict)
    unbound: set[tuple[str, str]] = field(default_factory=set)
    """Vhost and exchange: one of its targets was removed, or it was removed itself."""
    delayed: set[tuple[str, str]] = field(default_factory=set)
    """Exchanges that delay messages: they pass them on in another order."""
    _policies: list[PutPolicy] = field(default_factory=list)

    def take(self, found: Iterable[bytes | Command]) -> None:
        """In the order of the log."""
        for one in found:
            self._take(decode_command(one) if isinstance(one, bytes) else one)

    def _take(self, command: Command) -> None:
        match command:
            case DeclareQueue():
                self.queues[command.queue_id] = _traits(command)
            case DeclareExchange():
                if command.type == _DELAYED or command.waiting_queue_id:
                    self.delayed.add((command.vhost, command.name))
                if command.waiting_queue_id:
                    waiting = QueueTraits(command.vhost, f"waiting for {command.name}", command.durable, inner=True)
                    self.queues[command.waiting_queue_id] = waiting
            case DeleteQueue():
                for traits in self._named(command.vhost, command.name):
                    traits.deleted = True
                self.unbound.add((command.vhost, ""))
            case DeleteVhost():
                for traits in self.queues.values():
                    traits.deleted |= traits.vhost == command.vhost
            case DeleteExchange():
                self.unbound.add((command.vhost, command.name))
            case UnbindQueue() | UnbindExchange():
                self.unbound.add((command.vhost, command.source))
            case PutPolicy():
                self._policies.append(command)
            case PutLease():
                for traits in self._named(command.vhost, command.queue):
                    traits.leased = True
            case _:
                pass

    def _named(self, vhost: str, name: str) -> list[QueueTraits]:
        return [traits for traits in self.queues.values() if (traits.vhost, traits.name) == (vhost, name)]

    def apply_policies(self) -> None:
        """All policies that were ever in force, independent of time."""
        for policy in self._policies:
            keys = set(json.loads(policy.definition))
            drops, limits = bool(keys & {*_DROPPING, "max-age"}), "delivery-limit" in keys
            if not drops and not limits:
                continue
            for traits in self.queues.values():
                if traits.vhost == policy.vhost and _matches(policy.pattern, traits.name):
                    traits.drops |= drops
                    traits.limits_deliveries |= limits

    def name(self, queue_id: int) -> str:
        traits = self.queues.get(queue_id)
        if traits is None:
            return f"queue number {queue_id}"
        return traits.name if traits.vhost == "/" else f"{traits.name} in {traits.vhost}"


def _traits(command: DeclareQueue) -> QueueTraits:
    arguments: dict[str, Any] = decode_table(command.arguments)[0] if command.arguments else {}
    kind = arguments.get("x-queue-type")
    refuses = str(arguments.get("x-overflow", "")).startswith("reject-publish")
    dropping = [key for key in _DROPPING if f"x-{key}" in arguments and not (refuses and key in _BY_LENGTH)]
    return QueueTraits(
        command.vhost,
        command.name,
        command.durable,
        drops=bool(dropping) or command.auto_delete,
        limits_deliveries=kind == "quorum" or "x-delivery-limit" in arguments,
        by_priority="x-max-priority" in arguments or "x-last-value-key" in arguments,
        stream=kind == "stream",
        inner=command.inner,
    )


def _matches(pattern: str, name: str) -> bool:
    try:
        return compile_pattern(pattern).matches(name)
    except PatternError:
        return True
