"""One hostile input: bytes, their division into pieces, and whether the connection is opened properly before."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from tests.fuzz.conversations import Conversation
from tests.fuzz.methods import Tags, random_method
from tests.fuzz.mutations import mutated, random_frame
from tests.support.frames import PROTOCOL_HEADER, frame
from tests.support.methods import encode

OPENING = PROTOCOL_HEADER + b"".join(
    frame(1, channel, encode(name, **arguments))
    for channel, name, arguments in (
        (
            0,
            "connection.start-ok",
            {
                "client_properties": {"capabilities": {"consumer_cancel_notify": True, "connection.blocked": True}},
                "mechanism": "PLAIN",
                "response": b"\0guest\0guest",
                "locale": "en_US",
            },
        ),
        (0, "connection.tune-ok", {"channel_max": 2047, "frame_max": 131072, "heartbeat": 60}),
        (0, "connection.open", {"virtual_host": "/"}),
        (1, "channel.open", {}),
        (2, "channel.open", {}),
    )
)
PIECES_OF_OPENING = 5
"""Protocol header, start-ok, tune-ok, open and channel.open, at the beginning of every conversation."""


@dataclass(frozen=True)
class Case:
    kind: str
    opened: bool
    """Whether the bytes are for a connection that is open, with the channels 1 and 2."""
    data: bytes
    pieces: int
    """How many segments the bytes come in; 0 means one byte each."""

    def segments(self) -> list[bytes]:
        size = 1 if self.pieces == 0 else max(1, -(-len(self.data) // self.pieces))
        return [self.data[start : start + size] for start in range(0, len(self.data), size)]


class Source:
    """Draws inputs, with conversations to mutate."""

    def __init__(self, random: Random, conversations: list[Conversation]) -> None:
        self._random = random
        self._whole = conversations
        self._after_opening = [conversation[PIECES_OF_OPENING:] for conversation in conversations]

    def early(self) -> Case:
        """Draws an input for a connection on which nothing has been sent."""
        return self._case("conversation" if self._random.random() < 0.8 else "frames", opened=False, tags={})

    def spoiled(self) -> Case:
        """Draws an input for an open connection, which it will probably close."""
        return self._case("conversation" if self._random.random() < 0.85 else "frames", opened=True, tags={})

    def methods(self, tags: Tags) -> Case:
        """Draws an input for an open connection; `tags` are its deliveries, by channel."""
        return self._case("methods", opened=True, tags=tags)

    def _case(self, kind: str, *, opened: bool, tags: Tags) -> Case:
        random = self._random
        pieces = random.choice([1, 1, 1, 2, 3, 7])
        if kind == "conversation":
            data = mutated(random, self._after_opening if opened else self._whole)
        elif kind == "frames":
            data = b"".join(random_frame(random) for _ in range(random.randint(1, 4)))
        else:
            data = b"".join(random_method(random, tags) for _ in range(random.choice([1, 2, 5, 12])))
        if len(data) < 300 and random.random() < 0.05:
            pieces = 0
        return Case(kind, opened, data, pieces)
