"""Ports for brokers that tests start, stop and start again.

They are below the ephemeral ports of the operating system. While a broker is down, any outgoing connection may take an
ephemeral port; and a client that connects to an ephemeral port on which no process listens may be connected to itself.
"""

from __future__ import annotations

import os
import secrets
import socket
from contextlib import ExitStack, suppress
from random import Random

PORTS = range(20000, 32000)


def free_ports(count: int) -> list[int]:
    chosen: list[int] = []
    source = Random(f"{os.getpid()} {secrets.token_hex(8)}")
    while len(chosen) < count:
        port = source.choice(PORTS)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        if port not in chosen:
            chosen.append(port)
    return chosen


def free_port() -> int:
    return free_ports(1)[0]


def free_neighbours(count: int, apart: int = 100) -> int:
    """The first of so many neighbours, on both loopbacks, twice, `apart` from each other: for AMQP, and for HTTP."""
    for _ in range(200):
        first = free_port()
        with ExitStack() as sockets, suppress(OSError):
            for port in (*range(first, first + count), *range(first + apart, first + apart + count)):
                for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
                    sockets.enter_context(socket.socket(family)).bind((host, port))
            return first
    raise AssertionError("no ports are free")
