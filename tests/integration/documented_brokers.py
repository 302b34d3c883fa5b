"""Brokers that documented commands have started: whether they are ready, and in sync."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import httpx

from tests.support.http import NO_TLS
from tests.support.shell import HTTP_PORT, Shell

from .waiting import wait_until

ASK_PATIENCE_S: Final = 60.0
FORMING_S: Final = 90.0
"""A busy machine takes its time to start three brokers."""
BROKERS_MAX: Final = 4


def is_ok(port: int, path: str) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}{path}", timeout=ASK_PATIENCE_S, verify=NO_TLS).status_code == 200
    except httpx.TransportError:
        return False


def wait_while_alive(running: Shell, condition: Callable[[], object], what: str) -> None:
    """Raises AssertionError if a command ended that should go on."""

    def came() -> object:
        running.insist_on_life()
        return condition()

    wait_until(came, what, FORMING_S)


def begin_broker(running: Shell, command: str) -> None:
    """Returns once the broker is ready."""
    running.begin(command)
    wait_while_alive(running, lambda: is_ok(running.ports[HTTP_PORT], "/readyz"), f"a broker by {command!r}")


def in_sync(first_http: int) -> set[str]:
    """Names of the brokers, secondaries included, that the root knows to be in sync; none if there is no root."""
    for port in range(first_http, first_http + BROKERS_MAX):
        if not is_ok(port, "/api/health/root"):
            continue
        try:
            url = f"http://127.0.0.1:{port}/api/cluster"
            answer = httpx.get(url, auth=("guest", "guest"), timeout=ASK_PATIENCE_S, verify=NO_TLS)
        except httpx.TransportError:
            continue
        if answer.status_code == 200:
            return {one["name"] for one in answer.json()["members"] if one["in_sync"] and one["role"] != "absent"}
    return set()
