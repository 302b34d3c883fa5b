"""One socket to the data port of one broker, logged in.

Requests may be sent ahead; answers are taken in their order, each in two steps: its fields, and then its payload, so
that the next request can be sent while a large payload arrives. A caller that stops in between closes the connection.
"""

from __future__ import annotations

import socket
import ssl
from typing import NamedTuple

from pandomq import data_form
from pandomq.data_client import records
from pandomq.data_client.discovery import connect
from pandomq.data_client.failures import BadAnswer, refusal
from pandomq.data_client.records import BrokerGreeting
from pandomq.data_client.urls import Address, UrlLogin
from pandomq.data_form import BadDataMessage, Fields


class DataReply(NamedTuple):
    fields: Fields
    payload: memoryview


def _hello(login: UrlLogin) -> Fields:
    hello: Fields = {"version": data_form.VERSION, "vhost": login.vhost}
    if login.by_certificate:
        return {**hello, "mechanism": "EXTERNAL"}
    return {**hello, "user": login.user, "password": login.password}


class DataConnection:
    __slots__ = ("_payload_bytes", "_socket", "address", "greeting")

    def __init__(self, address: Address, context: ssl.SSLContext | None, login: UrlLogin, timeout_s: float) -> None:
        """Raises OSError, BadAnswer, or the Refused of the broker's answer."""
        self.address = address
        self._payload_bytes = 0
        self._socket = connect(address, context, timeout_s)
        try:
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.send("hello", _hello(login))
            self.greeting: BrokerGreeting = records.greeting(self.receive().fields)
        except BaseException:
            self.close()
            raise

    def wait_at_most(self, silence_s: float) -> None:
        """Sets the time after which OSError is raised, if the broker sends nothing for longer."""
        self._socket.settimeout(silence_s)

    def send(self, ask: str, fields: Fields, payload: bytes | memoryview = b"") -> None:
        """Raises OSError, or ValueError for a request that is too large."""
        self._socket.sendall(data_form.encode_json({"ask": ask, **fields}, len(payload)))
        if payload:
            self._socket.sendall(payload)

    def receive(self, *, stream: bool = False) -> DataReply:
        """Raises OSError, BadAnswer, or the Refused of the broker's answer."""
        fields = self.receive_fields(stream=stream)
        return DataReply(fields, self.receive_payload())

    def receive_fields(self, *, stream: bool = False) -> Fields:
        """The answer's fields; its payload has to be taken next, unless this raises."""
        try:
            sizes = data_form.decode_head(self._take(data_form.HEAD.size), data_form.DATA_ANSWER_BYTES_MAX)
            fields = data_form.decode_json(self._take(sizes.json_bytes))
        except BadDataMessage as error:
            raise BadAnswer(f"the broker at {self.address} sent a malformed response: {error}") from None
        self._payload_bytes = sizes.payload_bytes
        if "error" in fields:
            self.receive_payload()
            raise refusal(fields, stream=stream)
        return fields

    def receive_payload(self) -> memoryview:
        size, self._payload_bytes = self._payload_bytes, 0
        return self._take(size) if size else memoryview(b"")

    def close(self) -> None:
        self._socket.close()

    def _take(self, size: int) -> memoryview:
        octets = memoryview(bytearray(size))
        taken = 0
        while taken < size:
            count = self._socket.recv_into(octets[taken:])
            if not count:
                raise ConnectionResetError(f"the broker at {self.address} closed the connection")
            taken += count
        return octets
