"""Ports for brokers that tests start, stop and start again.

They are below the ephemeral ports of the operating system. While a broker is down, any outgoing connection may take an
ephemeral port; and a client that connects to an ephemeral port on which no process listens may be connected to itself.

A port is often given to a broker long before that broker listens, so a port that nobody uses yet is not a free port.
Each test process therefore claims a slice of the ports for itself, and goes through it in order: no other test process
gets these ports, and this one gets a port again only after all others of the slice.
"""

from __future__ import annotations

import errno
import itertools
import os
import socket
from collections.abc import Iterator

PORTS = range(20000, 32000)
SLICE_PORTS = 600
NEIGHBOURS_MAX = 100
"""The last `2 * NEIGHBOURS_MAX` ports of a slice are for neighbours: half of them for AMQP, and half for HTTP."""

# The name of an abstract socket is free again as soon as the process that bound it has ended, however it ended.
_claim: socket.socket | None = None
_claimed_by = 0
_singles: Iterator[int] = iter(())
_neighbours: Iterator[int] = iter(())


def free_ports(count: int) -> list[int]:
    _claim_slice()
    free = (port for port in itertools.islice(_singles, SLICE_PORTS) if _is_free(port))
    chosen = list(itertools.islice(free, count))
    assert len(chosen) == count, f"fewer than {count} ports of this process are free"
    return chosen


def free_port() -> int:
    return free_ports(1)[0]


def free_neighbours(count: int, apart: int = NEIGHBOURS_MAX) -> int:
    """The first of so many neighbours, on both loopbacks, twice, `apart` from each other: for AMQP, and for HTTP."""
    assert count < apart == NEIGHBOURS_MAX
    _claim_slice()
    for _ in range(NEIGHBOURS_MAX):
        ports = list(itertools.islice(_neighbours, count))
        if ports[-1] - ports[0] == count - 1 and all(_is_free(port) and _is_free(port + apart) for port in ports):
            return ports[0]
    raise AssertionError("no neighbouring ports of this process are free")


def _claim_slice() -> None:
    """Claims a slice of the ports, once for each process."""
    global _claim, _claimed_by, _singles, _neighbours
    if _claimed_by == os.getpid():
        return
    for first in range(PORTS.start, PORTS.stop, SLICE_PORTS):
        claim = socket.socket(socket.AF_UNIX)
        try:
            claim.bind(f"\0pandomq-test-ports-{first}")
        except OSError:
            claim.close()
            continue
        _claim, _claimed_by = claim, os.getpid()
        pairs = first + SLICE_PORTS - 2 * NEIGHBOURS_MAX
        _singles = itertools.cycle(range(first, pairs))
        _neighbours = itertools.cycle(range(pairs, pairs + NEIGHBOURS_MAX))
        return
    raise AssertionError(f"all ports from {PORTS.start} to {PORTS.stop - 1} are claimed by other test processes")


def _is_free(port: int) -> bool:
    for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        with socket.socket(family) as probe:
            try:
                probe.bind((host, port))
            except OSError as error:
                # A machine without IPv6 has no ::1, and nobody listens there.
                if error.errno == errno.EADDRINUSE:
                    return False
    return True
