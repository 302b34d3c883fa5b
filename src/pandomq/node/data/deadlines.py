"""The time that a client of the data port may take: for its login, a request, an answer, and between two requests."""

from __future__ import annotations

from pandomq.node.data import limits
from pandomq.node.data.session import DataSession, DataSessionState


def deadline_of(client: DataSession, now_ms: int, request_ms_max: int) -> tuple[int, str]:
    """When the client is to be closed if nothing happens, and why."""
    if client.state in (DataSessionState.NEW, DataSessionState.LOGGING_IN):
        return client.since_ms + limits.HELLO_MS_MAX, "it did not log in in time"
    if client.sending_bytes is not None:
        return client.moved_ms + limits.STALL_MS_MAX, "it did not read the response"
    if client.under_way is not None or client.reading_paused or client.requests:
        return now_ms + limits.STALL_MS_MAX, "its request took too long"
    if client.scanner.amid:
        stalled = (client.moved_ms + limits.STALL_MS_MAX, "it stopped in the middle of a request")
        if client.arriving_ms is None or not request_ms_max:
            return stalled
        return min(
            stalled, (client.arriving_ms + request_ms_max, "its request took longer than data_request_ms_max to arrive")
        )
    return client.moved_ms + limits.IDLE_MS_MAX, "it was idle for too long"
