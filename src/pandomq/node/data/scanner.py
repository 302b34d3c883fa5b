"""Bytes to requests: what came of one that is not complete is kept.

A large request is kept only once there is room for it (`wants`, then `admit`): whoever owns the scanner does not read
on before that, so that what is here without room is what one read brought.
"""

from __future__ import annotations

from typing import NamedTuple

from pandomq import data_form
from pandomq.data_form import BadMessage, Fields, Sizes
from pandomq.node.data.limits import HELLO_BYTES_MAX, SMALL_BYTES


class Request(NamedTuple):
    fields: Fields
    payload: bytes
    reserved_bytes: int
    """The room that it takes until it is answered."""


class Scanner:
    __slots__ = ("_admitted", "_buffer", "_sizes", "known")

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._sizes: Sizes | None = None
        self._admitted = False
        self.known = False
        """Whoever sends has said who it is; before that only little is listened to."""

    def feed(self, data: bytes | memoryview) -> None:
        self._buffer += data

    def take(self) -> Request | None:
        """The next request that is complete. Raises BadMessage: then nothing that follows can be understood."""
        sizes = self._look_at_head()
        if sizes is None or self.wants or len(self._buffer) < data_form.HEAD.size + sizes.total:
            return None
        begin = data_form.HEAD.size
        middle, end = begin + sizes.json_bytes, begin + sizes.total
        with memoryview(self._buffer) as octets:
            fields, payload = data_form.decode_json(octets[begin:middle]), bytes(octets[middle:end])
        del self._buffer[:end]
        request = Request(fields, payload, self.reserved_bytes)
        self._sizes, self._admitted = None, False
        return request

    def _look_at_head(self) -> Sizes | None:
        if self._sizes is None and len(self._buffer) >= data_form.HEAD.size:
            self._sizes = data_form.decode_head(bytes(self._buffer[: data_form.HEAD.size]))
            if not self.known and self._sizes.total > HELLO_BYTES_MAX:
                raise BadMessage(f"a hello of {self._sizes.total} bytes: expected at most {HELLO_BYTES_MAX}")
        return self._sizes

    @property
    def wants(self) -> int:
        """So much room is needed before the request that has begun can be taken."""
        if self._sizes is None or self._admitted or self._sizes.total <= SMALL_BYTES:
            return 0
        return self._sizes.total

    def admit(self) -> None:
        self._admitted = True

    @property
    def reserved_bytes(self) -> int:
        """Of the request that has begun."""
        return self._sizes.total if self._sizes is not None and self._admitted else 0

    @property
    def amid(self) -> bool:
        """A request has begun."""
        return bool(self._buffer)
