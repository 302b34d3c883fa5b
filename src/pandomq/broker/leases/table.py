"""All leases of a cluster: shared state, which changes by commands only.

Where a lease's messages are is said here, and that they left their queue in the same entry of the log; their bytes are
in the lease's stream.
"""

from collections.abc import Iterator
from typing import TypeAlias, assert_never

from pandomq.broker.commands import (
    EndLease,
    ForgetLease,
    LeaseCommand,
    LeaseMessages,
    PutLease,
    ReleaseLeased,
    ReturnLeased,
)
from pandomq.broker.leases.lease import Lease, Run, split_stream_name

_Place: TypeAlias = tuple[str, str]
"""Vhost and queue."""


class LeaseTable:
    __slots__ = ("_count", "_queues")

    def __init__(self) -> None:
        self._queues: dict[_Place, dict[str, Lease]] = {}
        """By name, of each queue that has any."""
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Lease]:
        return iter([lease for leases in self._queues.values() for lease in leases.values()])

    def find(self, vhost: str, queue: str, name: str) -> Lease | None:
        return self._queues.get((vhost, queue), {}).get(name)

    def of_queue(self, vhost: str, queue: str) -> list[Lease]:
        return list(self._queues.get((vhost, queue), {}).values())

    def of_stream(self, vhost: str, stream: str) -> Lease | None:
        split = split_stream_name(stream)
        return None if split is None else self.find(vhost, *split)

    def apply(self, command: LeaseCommand) -> None:
        if isinstance(command, PutLease):
            self._put(command)
            return
        lease = self._queues[command.vhost, command.queue][command.name]
        match command:
            case LeaseMessages():
                lease.add([Run(*run) for run in command.runs])
            case ReleaseLeased() | ReturnLeased():
                lease.leave(command.offset)
            case EndLease():
                lease.ending = True
            case ForgetLease():
                self._forget(lease)
            case _:
                assert_never(command)

    def _put(self, command: PutLease) -> None:
        leases = self._queues.setdefault((command.vhost, command.queue), {})
        known = leases.get(command.name)
        if known is None:
            self._count += 1
            leases[command.name] = Lease(
                command.vhost, command.queue, command.name, command.first_offset, command.timeout_ms
            )
        else:
            known.timeout_ms = command.timeout_ms

    def _forget(self, lease: Lease) -> None:
        place = (lease.vhost, lease.queue)
        self._count -= 1
        del self._queues[place][lease.name]
        if not self._queues[place]:
            del self._queues[place]

    def forget_vhost(self, vhost: str) -> None:
        for lease in self:
            if lease.vhost == vhost:
                self._forget(lease)

    def commands(self) -> Iterator[LeaseCommand]:
        """Those that make the same table anew."""
        for lease in self:
            yield PutLease(lease.vhost, lease.queue, lease.name, lease.first_offset, lease.timeout_ms)
            if lease.runs:
                yield LeaseMessages(lease.vhost, lease.queue, lease.name, list(lease.runs))
            if lease.ending:
                yield EndLease(lease.vhost, lease.queue, lease.name)
