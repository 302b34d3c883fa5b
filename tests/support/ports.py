"""Ports for brokers that tests start, stop and start again.

They are below those that the system gives to outgoing connections. A port from among those may be taken by anybody's
connection while its broker is down; and whoever dials one that nobody listens on may be connected to itself.
"""

from __future__ import annotations

import os
import secrets
import socket
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
