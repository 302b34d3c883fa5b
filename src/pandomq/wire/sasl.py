"""Parses user and password from a client's answer to connection.start.

It only parses: the broker decides about the login. A response that cannot be parsed is a syntax error.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from pandomq.errors import ConnectionFault, command_invalid, syntax_error
from pandomq.fieldtable import decode_table
from pandomq.ids import UserName


class Credentials(NamedTuple):
    user: UserName
    password: bytes


def read_response(mechanism: str, response: bytes) -> Credentials:
    """The credentials in a response; a ConnectionFault if there are none."""
    reader = _READERS.get(mechanism)
    if reader is None:
        raise command_invalid(f"invalid authentication mechanism '{mechanism}'")
    return reader(response)


def _read_plain(response: bytes) -> Credentials:
    # An identity to act as (before the first zero) must be empty, as in RabbitMQ.
    parts = response.split(b"\0")
    if len(parts) != 3 or parts[0]:
        raise syntax_error("response to PLAIN is invalid")
    return Credentials(_user(parts[1]), parts[2])


def _read_amqplain(response: bytes) -> Credentials:
    # A field table without its length.
    try:
        table, _ = decode_table(len(response).to_bytes(4, "big") + response)
    except ConnectionFault:
        raise syntax_error("response to AMQPLAIN is invalid") from None
    user, password = _octets(table.get("LOGIN")), _octets(table.get("PASSWORD"))
    if user is None or password is None:
        raise syntax_error("AMQPLAIN auth info is missing LOGIN or PASSWORD field")
    return Credentials(_user(user), password)


def _read_external(response: bytes) -> Credentials:
    # The identity was proven outside of AMQP; the response may repeat the name.
    return Credentials(_user(response), b"")


def _read_cluster(response: bytes) -> Credentials:
    # A broker, which has no user; `cluster` parses its response together with its proof.
    return Credentials(UserName(""), response)


def _user(octets: bytes) -> UserName:
    return UserName(octets.decode("utf-8", "surrogateescape"))


def _octets(value: object) -> bytes | None:
    if isinstance(value, str):
        return value.encode()
    return value if isinstance(value, bytes) else None


EXTERNAL: Final = "EXTERNAL"
"""For clients with a certificate."""
CLUSTER: Final = "PANDOMQ"
"""For other brokers of the cluster: both sides prove that they have its key."""

_READERS: Final[dict[str, Callable[[bytes], Credentials]]] = {
    "PLAIN": _read_plain,
    "AMQPLAIN": _read_amqplain,
    EXTERNAL: _read_external,
    CLUSTER: _read_cluster,
}

MECHANISMS: Final = ("AMQPLAIN", "PLAIN")
"""The mechanisms that are offered unless the configuration names others."""
KNOWN_MECHANISMS: Final = ("PLAIN", "AMQPLAIN", EXTERNAL)
"""The mechanisms that the configuration may name. It cannot change how brokers log in."""
