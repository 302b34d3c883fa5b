"""A connection that is re-established when it is lost: to any broker that answers, or always to the root.

Brokers are tried in turn, those of the urls first and then those that other brokers have named, until one accepts the
login or the timeout is over. A wrong password or an untrusted certificate is raised once every broker has been tried:
waiting does not help there.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from typing import NamedTuple

from pandomq.data_client.connection import DataConnection
from pandomq.data_client.discovery import find_data_ports
from pandomq.data_client.failures import BadAnswer, DataFailure, NotAllowed, Refused, Unreachable
from pandomq.data_client.patience import Patience
from pandomq.data_client.urls import Address, Brokers

ROOT = "root"


class _Place(NamedTuple):
    address: Address
    is_data_port: bool
    """Otherwise it is an AMQP port, which announces the data port."""


class KnownBrokers:
    """Addresses that brokers have announced, shared by all lines of a client."""

    __slots__ = ("data_ports",)

    def __init__(self) -> None:
        self.data_ports: tuple[str, ...] = ()


class Line:
    __slots__ = ("_brokers", "_connection", "_context", "_known", "_root", "_turn", "_why", "at_root")

    def __init__(self, brokers: Brokers, known: KnownBrokers, *, at_root: bool, turn: int = 0) -> None:
        """`turn` selects which of the urls' brokers is tried first."""
        self._brokers = brokers
        self._known = known
        self.at_root = at_root
        self._turn = turn
        self._connection: DataConnection | None = None
        self._context: ssl.SSLContext | None = None
        self._root = ""
        """The root's data port, as far as it is known."""
        self._why: dict[str, str] = {}
        """The last error, by address."""

    def connected(self, patience: Patience) -> DataConnection:
        """Raises Unreachable, NotAllowed or another permanent DataFailure."""
        connection = self._connection
        while connection is None:
            connection, hopeless = self._try_all(patience)
            if connection is None:
                if hopeless is not None:
                    raise hopeless
                if patience.over:
                    raise Unreachable(self._explanation)
                patience.pause()
        self._connection = connection
        connection.wait_at_most(patience.silence_s)
        return connection

    def switch_broker(self, why: str) -> None:
        """Switches to the next broker, if there is one."""
        if self._connection is not None:
            self._why[str(self._connection.address)] = why
            self._root = "" if self._root == str(self._connection.address) else self._root
            self._turn += 1
        self.close()

    def follow(self, root: str, why: str) -> None:
        """Switches to the root at this address; to none if it is unknown."""
        self.switch_broker(why)
        self._root = root

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _try_all(self, patience: Patience) -> tuple[DataConnection | None, DataFailure | None]:
        """A connection to one of them, or the permanent failure of all that answered."""
        hopeless: DataFailure | None = None
        hopeful = False
        for place in self._places():
            if patience.over:
                break
            try:
                return self._connect(place, patience), None
            except (NotAllowed, ssl.SSLCertVerificationError) as failure:
                hopeless = failure if isinstance(failure, NotAllowed) else _untrusted(place.address, failure)
            except (OSError, BadAnswer, Refused) as failure:
                hopeful = hopeful or not isinstance(failure, OSError)
                self._why[str(place.address)] = _reason(failure)
        return None, None if hopeful else hopeless

    def _places(self) -> Iterator[_Place]:
        if self.at_root and self._root:
            yield from _places([self._root])
        addresses = self._brokers.addresses
        for at in range(len(addresses)):
            yield _Place(addresses[(self._turn + at) % len(addresses)], is_data_port=False)
        yield from _places(self._known.data_ports)

    def _connect(self, place: _Place, patience: Patience) -> DataConnection:
        connection = self._open(place, patience)
        greeting = connection.greeting
        self._known.data_ports = greeting.brokers or self._known.data_ports
        if not self.at_root or greeting.role == ROOT:
            return connection
        connection.close()
        for root in _places([greeting.root]):
            connection = self._open(root, patience)
            if connection.greeting.role == ROOT:
                self._root = greeting.root
                return connection
            connection.close()
        raise BadAnswer("the broker is not the root")

    def _open(self, place: _Place, patience: Patience) -> DataConnection:
        context = self._tls_context()
        if place.is_data_port:
            return DataConnection(place.address, context, self._brokers.login, patience.connect_s)
        return self._open_first(find_data_ports(place.address, context, patience.connect_s), context, patience)

    def _open_first(self, ports: list[Address], context: ssl.SSLContext | None, patience: Patience) -> DataConnection:
        """Connects to the first of them that answers; there is at least one."""
        for port in ports[:-1]:
            try:
                return DataConnection(port, context, self._brokers.login, patience.connect_s)
            except OSError as failure:
                self._why[str(port)] = _reason(failure)
        return DataConnection(ports[-1], context, self._brokers.login, patience.connect_s)

    def _tls_context(self) -> ssl.SSLContext | None:
        if self._context is None and self._brokers.tls is not None:
            self._context = self._brokers.tls.context()
        return self._context

    @property
    def _explanation(self) -> str:
        told = "; ".join(f"{address}: {why}" for address, why in self._why.items())
        return (
            f"no broker{' that is the root' if self.at_root else ''} could be reached ({told or 'the time was over'}). "
            "Check the URL, and that the brokers are running"
        )


def _places(texts: list[str] | tuple[str, ...]) -> Iterator[_Place]:
    for text in texts:
        try:
            yield _Place(Address.parse(text), is_data_port=True)
        except ValueError:
            continue


def _reason(failure: Exception) -> str:
    if isinstance(failure, TimeoutError):
        return "the broker did not respond in time"
    return (failure.strerror if isinstance(failure, OSError) else None) or str(failure)


def _untrusted(address: Address, failure: ssl.SSLCertVerificationError) -> DataFailure:
    return DataFailure(f"the certificate of the broker at {address} is not trusted: {failure.verify_message}")
