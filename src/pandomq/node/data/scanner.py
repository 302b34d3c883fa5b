"""Divides bytes into requests, and keeps the bytes of an incomplete request. The JSON of a request is decoded later
(`decode`), when the request begins: requests that a client sends ahead take no more memory than their bytes.

A large request is kept only once there is room for it (`wants`, then `admit`), which includes the memory that its JSON
takes when it is decoded. Before that, the owner of the scanner reads nothing more: so the data that the scanner holds
without room is that of one read.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from pandomq import data_form
from pandomq.data_form import DATA_JSON_BYTES_MAX, BadDataMessage, Fields, Sizes
from pandomq.node.data import limits
from pandomq.node.data.limits import HELLO_BYTES_MAX, SMALL_BYTES

_LARGE: Final = re.compile(rb'\s*\{\s*"ask"\s*:\s*"(?:' + "|".join(limits.LARGE_REQUESTS).encode() + rb')"')
_LARGE_NAMED: Final = " and ".join(limits.LARGE_REQUESTS)


class DataRequest(NamedTuple):
    json: bytes
    payload: bytes
    reserved_bytes: int
    """The room that it takes until it is answered."""

    def decode(self) -> Fields:
        """Raises BadDataMessage."""
        is_large = len(self.json) > limits.REQUEST_JSON_BYTES_MAX
        most = limits.LARGE_REQUEST_VALUES_MAX if is_large else limits.REQUEST_VALUES_MAX
        if values_of(self.json) > most:
            raise BadDataMessage(f"the JSON object has too many values: at most {most} commas and brackets are allowed")
        return data_form.decode_request(self.json)


def values_of(json: bytes) -> int:
    """At least the number of values in this JSON, from its commas and opening brackets."""
    return 1 + json.count(b",") + json.count(b"[") + json.count(b"{")


class DataScanner:
    __slots__ = ("_admitted", "_buffer", "_sizes", "known")

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._sizes: Sizes | None = None
        self._admitted = False
        self.known = False
        """The sender has logged in; before that the limits are small."""

    def feed(self, data: bytes | memoryview) -> None:
        self._buffer += data

    def take(self) -> DataRequest | None:
        """The next complete request. Raises BadDataMessage: then no later data can be understood."""
        sizes = self._look_at_head()
        if sizes is None or self.wants or len(self._buffer) < data_form.HEAD.size + sizes.total:
            return None
        begin = data_form.HEAD.size
        middle, end = begin + sizes.json_bytes, begin + sizes.total
        with memoryview(self._buffer) as octets:
            request = DataRequest(bytes(octets[begin:middle]), bytes(octets[middle:end]), self.reserved_bytes)
        del self._buffer[:end]
        self._sizes, self._admitted = None, False
        return request

    def _look_at_head(self) -> Sizes | None:
        head = data_form.HEAD.size
        if self._sizes is not None or len(self._buffer) < head:
            return self._sizes
        sizes = data_form.decode_head(bytes(self._buffer[:head]))
        if not self.known and sizes.total > HELLO_BYTES_MAX:
            raise BadDataMessage(f"the hello request has {sizes.total} bytes: at most {HELLO_BYTES_MAX} are allowed")
        if sizes.json_bytes > limits.REQUEST_JSON_BYTES_MAX:
            if len(self._buffer) < head + limits.LARGE_REQUEST_BEGIN_BYTES:
                return None
            if _LARGE.match(self._buffer, head, head + limits.LARGE_REQUEST_BEGIN_BYTES) is None:
                raise BadDataMessage(
                    f"the JSON object has {sizes.json_bytes} bytes: at most {limits.REQUEST_JSON_BYTES_MAX} are "
                    f"allowed; {_LARGE_NAMED} may have {DATA_JSON_BYTES_MAX} if 'ask' comes first"
                )
        self._sizes = sizes
        return sizes

    @property
    def wants(self) -> int:
        """The room that is needed before the request that has begun can be taken."""
        return 0 if self._admitted else self._needed_bytes()

    def _needed_bytes(self) -> int:
        """A request before the login is small, and counts for no user."""
        if self._sizes is None or not self.known:
            return 0
        size_bytes = self._sizes.payload_bytes + self._sizes.json_bytes * limits.DECODED_BYTES_PER_JSON_BYTE
        return size_bytes if size_bytes > SMALL_BYTES else 0

    def admit(self) -> None:
        self._admitted = True

    @property
    def reserved_bytes(self) -> int:
        """The room of the request that has begun."""
        return self._needed_bytes() if self._admitted else 0

    @property
    def amid(self) -> bool:
        """A request has begun, and is not complete."""
        return bool(self._buffer)
