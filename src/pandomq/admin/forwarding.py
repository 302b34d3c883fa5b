"""Requests that are for another broker: changes are the root's.

They go to that broker's HTTP API as they came, with the caller's own login, and its answer goes back as it came. A
request is passed on once: who gets one that was passed on, and is not the one it is for, says so.
"""

from __future__ import annotations

import asyncio
import ipaddress
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import h11
from starlette.responses import Response

from pandomq.admin import limits
from pandomq.admin.refusals import unavailable
from pandomq.runtime.listen import Address

if TYPE_CHECKING:
    from pandomq.admin.call import Call
    from pandomq.node.node import Node

FORWARDED_BY: Final = "x-pandomq-forwarded-by"
_PASSED_ON: Final = ("authorization", "content-type", "x-reason", "accept")
_PASSED_BACK: Final = ("content-type", "allow", "location", "cache-control", "www-authenticate")
_READ_BYTES: Final = 64 * 1024


async def forward_to_root(call: Call) -> Response:
    """Raises Refusal (503) if no root is known, or it cannot be reached."""
    node = call.node
    root = call.views.cluster().root
    if root is None or root == call.services.settings.name:
        refusal = node.office.refusal()
        raise unavailable("no root is known at present" if refusal is None else refusal.reply_text.partition(" - ")[2])
    return await forward(call, root)


async def forward(call: Call, name: str) -> Response:
    """To the broker of that name. Raises Refusal (503)."""
    sender = call.request.headers.get(FORWARDED_BY)
    if sender is not None:
        raise unavailable(f"{sender} took {call.services.settings.name} for the one to ask, and that is {name}")
    address = _http_address(call.node, name)
    try:
        async with asyncio.timeout(limits.FORWARD_S_MAX):
            return await _exchange(call, address)
    except (OSError, TimeoutError, h11.RemoteProtocolError) as error:
        why = (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
        raise unavailable(f"{name} does not answer at http://{address}: {why}") from None


def _http_address(node: Node, name: str) -> Address:
    link = next((link for link in node.views.peer_links() if link.name == name), None)
    if link is None:
        raise unavailable(f"this is for {name}, to which there is no link")
    try:
        address = Address.parse(link.http)
        place = Address.parse(link.address or link.amqp)
    except ValueError:
        raise unavailable(f"this is for {name}, which has no HTTP API, or has not said where") from None
    if _is_loopback(address.host) and not _is_loopback(place.host):
        raise unavailable(
            f"this is for {name}, whose HTTP API is on {address} of its own machine: set node.http or "
            "cluster.advertise_http there"
        )
    return address


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


async def _exchange(call: Call, address: Address) -> Response:
    async with asyncio.timeout(limits.FORWARD_CONNECT_S_MAX):
        reader, writer = await asyncio.open_connection(address.host, address.port)
    try:
        for data in _request(call, address):
            writer.write(data)
        await writer.drain()
        return await _response(reader)
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


def _request(call: Call, address: Address) -> list[bytes]:
    request = call.request
    headers = [(name, request.headers[name]) for name in _PASSED_ON if name in request.headers]
    headers += [
        ("host", str(address)),
        ("connection", "close"),
        ("content-length", str(len(call.octets))),
        (FORWARDED_BY, call.services.settings.name),
    ]
    connection = h11.Connection(h11.CLIENT)
    sent = [
        connection.send(h11.Request(method=request.method, target=call.target, headers=headers)),
        connection.send(h11.Data(data=call.octets)),
        connection.send(h11.EndOfMessage()),
    ]
    return [data for data in sent if data]


async def _response(reader: asyncio.StreamReader) -> Response:
    connection = h11.Connection(h11.CLIENT)
    # What was sent is of no interest to this one: it only has to know that an answer is due.
    connection.send(h11.Request(method="GET", target="/", headers=[("host", "")]))
    connection.send(h11.EndOfMessage())
    status, headers, pieces, size = 0, {}, [], 0
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            connection.receive_data(await reader.read(_READ_BYTES))
        elif isinstance(event, h11.Response):
            status = event.status_code
            headers = {name.decode(): value.decode("latin-1") for name, value in event.headers}
        elif isinstance(event, h11.Data):
            pieces.append(bytes(event.data))
            size += len(event.data)
            if size > limits.FORWARD_BYTES_MAX:
                raise unavailable(f"the answer is larger than {limits.FORWARD_BYTES_MAX} bytes")
        elif isinstance(event, h11.EndOfMessage | h11.ConnectionClosed):
            break
    kept = {name: value for name, value in headers.items() if name in _PASSED_BACK}
    return Response(b"".join(pieces), status, kept)
