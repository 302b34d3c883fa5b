"""Publishes that are encoded once and sent repeatedly: many messages of equal length in one block of bytes.

The equal length makes counting cheap: the number of sent bytes gives the number of messages.
"""

from collections.abc import Sequence

from pandomq.bench import limits
from pandomq.bench.client import wire
from pandomq.bench.load import Load

HEADER_KEY = "bench-key"


class Batch:
    def __init__(self, messages: Sequence[bytes]) -> None:
        self.message_bytes = len(messages[0])
        if any(len(message) != self.message_bytes for message in messages):
            raise ValueError("messages of one batch have to be equally long")
        self.messages = messages
        self.data = memoryview(b"".join(messages))
        if len(self.data) > limits.BATCH_BYTES_MAX:
            raise ValueError(f"a batch of {len(self.data)} bytes is too large")


def encode_batch(load: Load, exchange: str, keys: Sequence[str], channel: int, frame_bytes_max: int) -> Batch:
    """Messages with all routing keys, priorities and header values of the load in turn."""
    body = bytes(load.size_bytes)

    def message(number: int) -> bytes:
        headers = {HEADER_KEY: f"{number % load.header_keys:06d}"} if load.header_keys else None
        properties = wire.MessageProperties(
            persistent=load.persistent,
            priority=number % load.priorities if load.priorities else None,
            expiration_ms=load.expiration_ms or None,
            headers=headers,
        )
        return wire.publish(channel, exchange, keys[number % len(keys)], properties, body, frame_bytes_max)

    enough = limits.BATCH_BYTES_AIM // len(message(0))
    return Batch([message(number) for number in range(max(enough, len(keys), load.header_keys, load.priorities, 1))])
