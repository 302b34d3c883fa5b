"""Names in paths and bodies that become short strings of the protocol."""

from __future__ import annotations

from pandomq.admin.refusals import bad_request
from pandomq.limits import SHORT_STRING_BYTES_MAX


def short(kind: str, name: str) -> str:
    """The name, if it fits. Raises Refusal (400) in RabbitMQ's words."""
    size = len(name.encode())
    if size > SHORT_STRING_BYTES_MAX:
        raise bad_request(f"{kind} should be less than {SHORT_STRING_BYTES_MAX} bytes, actually was {size}\n")
    return name
