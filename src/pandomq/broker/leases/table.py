"""All leases of a cluster: shared state, which changes by commands only.

The table has the places of a lease's messages, which left their queue in the same entry of the log; their bytes are in
the lease's stream.
"""

from collections.abc import Iterator
from typing import Final, TypeAlias, assert_never

from pandomq.broker.leases.lease import Lease, LeaseRun, split_stream_name
from pandomq.broker.log.commands import (
    EndLease,
    ForgetLease,
    LeaseCommand,
    LeaseMessages,
    PutLease,
    ReleaseLeased,
    ReturnLeased,
)

_Place: TypeAlias = tuple[str, str]
"""Vhost and queue."""

LEASE_BYTES: Final = 5_000
RUN_BYTES: Final = 250
"""Estimates of the memory of a lease with its stream, and of a run of its messages."""


class LeaseTable:
    __slots__ = ("_count", "_queues", "_run_count")

    def __init__(self) -> None:
        self._queues: dict[_Place, dict[str, Lease]] = {}
        """By queue, for each that has any: its leases by name."""
        self._count = self._run_count = 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Lease]:
        return iter([lease for leases in self._queues.values() for lease in leases.values()])

    @property
    def size_bytes(self) -> int:
        """An estimate of the memory of all leases, without their messages."""
        return self._count * LEASE_BYTES + self._run_count * RUN_BYTES

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
        runs_before = len(lease.runs)
        match command:
            case LeaseMessages():
                lease.add([LeaseRun(*run) for run in command.runs])
            case ReleaseLeased() | ReturnLeased():
                lease.leave(command.offset)
            case EndLease():
                lease.ending = True
            case ForgetLease():
                self._forget(lease)
                return
            case _:
                assert_never(command)
        self._run_count += len(lease.runs) - runs_before

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
        self._run_count -= len(lease.runs)
        del self._queues[place][lease.name]
        if not self._queues[place]:
            del self._queues[place]

    def forget_vhost(self, vhost: str) -> None:
        for lease in self:
            if lease.vhost == vhost:
                self._forget(lease)

    def commands(self) -> Iterator[LeaseCommand]:
        """The commands that make the same table anew."""
        for lease in self:
            yield PutLease(lease.vhost, lease.queue, lease.name, lease.first_offset, lease.timeout_ms)
            if lease.runs:
                yield LeaseMessages(lease.vhost, lease.queue, lease.name, list(lease.runs))
            if lease.ending:
                yield EndLease(lease.vhost, lease.queue, lease.name)
