"""Bugs of leases: of their timeouts, of releases by other clients, and of several leases of one queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from pandomq.broker.leases.expiry import LeaseExpiry
from pandomq.broker.leases.leases import Leases
from tests.sim.planted.planted_bug import Patch, PlantedBug

if TYPE_CHECKING:
    from pandomq.broker.leases.asks import LeaseAsk
    from pandomq.broker.leases.lease import Lease
    from pandomq.broker.queues.queue import Queue

NODES: Final = 3


def _forget_times(patch: Patch) -> None:
    begin_serving, renewed = LeaseExpiry.begin_serving, LeaseExpiry.renewed

    def careless(expiry: LeaseExpiry) -> None:
        patch.set(LeaseExpiry, "renewed", lambda expiry, lease: None)
        begin_serving(expiry)
        patch.set(LeaseExpiry, "renewed", renewed)

    patch.set(LeaseExpiry, "begin_serving", careless)


def _count_once(patch: Patch) -> None:
    renewed = LeaseExpiry.renewed

    def first_only(expiry: LeaseExpiry, lease: Lease) -> None:
        if lease not in expiry._due_ms:
            renewed(expiry, lease)

    patch.set(LeaseExpiry, "renewed", first_only)


def _read_in_vain(patch: Patch) -> None:
    patch.set(LeaseExpiry, "read", lambda expiry, lease, now_ms: None)


def _ignore_leased(patch: Patch) -> None:
    move = Leases._move

    def greedy(leases: Leases, ask: LeaseAsk, lease: Lease, queue: Queue) -> None:
        more = msgspec.structs.replace(ask, messages_max=ask.messages_max + lease.message_count)
        move(leases, more, lease, queue)

    patch.set(Leases, "_move", greedy)


def _end_neighbours(patch: Patch) -> None:
    end = LeaseExpiry.end

    def sweeping(expiry: LeaseExpiry, lease: Lease) -> None:
        for one in expiry._table.of_queue(lease.vhost, lease.queue):
            end(expiry, one)

    patch.set(LeaseExpiry, "end", sweeping)


PLANTED_BUGS: Final = (
    PlantedBug("lease-time-forgotten", "Leases from before a restart never time out.", _forget_times),
    PlantedBug("lease-time-of-root", "Leases never time out at the next root.", _forget_times, NODES),
    PlantedBug("lease-not-renewed", "The timeout of a lease counts from its first request.", _count_once),
    PlantedBug("lease-read-in-vain", "A client that reads leased messages does not renew the lease.", _read_in_vain),
    PlantedBug("lease-grows", "A lease gets more messages at each request, however many it has.", _ignore_leased),
    PlantedBug("lease-ends-neighbours", "All leases of a queue end with one of them.", _end_neighbours),
)
