"""The `[data]` section: where the data port listens, and what clients are told about that."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pandomq.cli.config.cluster import from_elsewhere, own_host_of
from pandomq.cli.config.keys import OFF
from pandomq.cli.config.sections import Configuration
from pandomq.node.data.places import DataPlaces
from pandomq.runtime.listen import Address

PORT_STEP: Final = 8
"""From AMQP's port to that of the data port, where nobody chose one: 5672 to 5680."""
_ALL_INTERFACES: Final = ("0.0.0.0", "::")


def data_address(configuration: Configuration) -> Address | None:
    """None: there is none. A secondary has no streams, and tells its clients where the primaries' data ports are."""
    return None if _is_secondary(configuration) else _address(configuration.data.listen, configuration.node.listen)


def data_tls_address(configuration: Configuration) -> Address | None:
    if _is_secondary(configuration):
        return None
    return _address(configuration.data.tls_listen, configuration.node.tls.listen)


def _is_secondary(configuration: Configuration) -> bool:
    return bool(configuration.cluster.join) and own_host_of(configuration) is None


def may_move(configuration: Configuration) -> bool:
    """Nobody chose the ports."""
    return configuration.data.listen is None and configuration.data.tls_listen is None


def data_places(configuration: Configuration) -> DataPlaces:
    data, node = configuration.data, configuration.node
    own_host = own_host_of(configuration)
    plain, tls = data_address(configuration), data_tls_address(configuration)
    return DataPlaces(
        told=_told(plain, data.advertise, node.listen),
        told_tls=_told(tls, data.advertise_tls, node.tls.listen),
        advertised=_advertised(plain, data.advertise, own_host),
        advertised_tls=_advertised(tls, data.advertise_tls, own_host),
    )


def problems(configuration: Configuration) -> Iterator[str]:
    data, tls = configuration.data, configuration.node.tls
    if data.tls_listen not in (None, OFF) and (tls.certificate is None or tls.key is None):
        yield f"data.tls_listen is {data.tls_listen}, which needs node.tls.certificate and node.tls.key"


def _address(chosen: str | None, amqp: str) -> Address | None:
    if chosen is not None:
        return None if chosen == OFF else Address.parse(chosen)
    if amqp == OFF:
        return None
    host, port = Address.parse(amqp)
    return Address(host, port + PORT_STEP if 0 < port <= 65535 - PORT_STEP else 0)


def _told(address: Address | None, advertised: str | None, amqp: str) -> str:
    """Whoever found AMQP at a host finds the data port there, too, if it listens at the same one or everywhere."""
    if address is None or advertised is not None:
        return "" if address is None else advertised or ""
    same = amqp != OFF and Address.parse(amqp).host == address.host
    return f":{address.port}" if same or address.host in _ALL_INTERFACES else str(address)


def _advertised(address: Address | None, advertised: str | None, own_host: str | None) -> str:
    if address is None or advertised is not None:
        return "" if address is None else advertised or ""
    return from_elsewhere(str(address), own_host)
