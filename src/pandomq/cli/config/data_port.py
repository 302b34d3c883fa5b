"""The `[data]` section: where the data port listens, and which addresses clients are told."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pandomq.cli.config.cluster import from_elsewhere, own_host_of, parse_primary
from pandomq.cli.config.keys import OFF
from pandomq.cli.config.sections import Configuration
from pandomq.node.data.places import DataPlaces
from pandomq.runtime.listen import ListenAddress

PORTS: Final = {5672: 5680, 5671: 5679}
"""The default data ports for AMQP's own ports; for other AMQP ports any free one is used. Clients are told the port."""
_ALL_INTERFACES: Final = ("0.0.0.0", "::")


def data_address(configuration: Configuration) -> ListenAddress | None:
    """None: there is none. A secondary has no streams, and tells its clients the primaries' data ports."""
    if _is_secondary(configuration):
        return None
    return _address(configuration, configuration.data.listen, configuration.node.listen)


def data_tls_address(configuration: Configuration) -> ListenAddress | None:
    if _is_secondary(configuration):
        return None
    return _address(configuration, configuration.data.tls_listen, configuration.node.tls.listen)


def _is_secondary(configuration: Configuration) -> bool:
    return bool(configuration.cluster.join) and own_host_of(configuration) is None


def may_move(configuration: Configuration) -> bool:
    """The operator did not choose the ports."""
    return configuration.data.listen is None and configuration.data.tls_listen is None


def behind_proxy(configuration: Configuration) -> bool:
    """Without a setting the broker assumes one proxy for both ports: otherwise a client behind a proxy on this machine
    would count as a user of the loopback."""
    chosen = configuration.data.proxy_protocol
    return configuration.node.proxy_protocol if chosen is None else chosen


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
        yield f"data.tls_listen is {data.tls_listen}, but node.tls.certificate or node.tls.key is not set"


def _address(configuration: Configuration, chosen: str | None, amqp: str) -> ListenAddress | None:
    if chosen is not None:
        return None if chosen == OFF else ListenAddress.parse(chosen)
    if amqp == OFF:
        return None
    host, amqp_port = ListenAddress.parse(amqp)
    port = PORTS.get(amqp_port, 0)
    return ListenAddress(host, 0 if port in _chosen_ports(configuration) else port)


def _chosen_ports(configuration: Configuration) -> set[int]:
    """Ports for other uses, here or on another broker that may be on this machine."""
    node, cluster = configuration.node, configuration.cluster
    places = [node.listen, node.tls.listen, node.http, cluster.listen]
    places += [parse_primary(text).address for text in cluster.primaries]
    return {ListenAddress.parse(place).port for place in places if place != OFF}


def _told(address: ListenAddress | None, advertised: str | None, amqp: str) -> str:
    """A client that reached AMQP at a host finds the data port there, too, if it listens at the same host or
    everywhere."""
    if address is None or advertised is not None:
        return "" if address is None else advertised or ""
    same = amqp != OFF and ListenAddress.parse(amqp).host == address.host
    return f":{address.port}" if same or address.host in _ALL_INTERFACES else str(address)


def _advertised(address: ListenAddress | None, advertised: str | None, own_host: str | None) -> str:
    if address is None or advertised is not None:
        return "" if address is None else advertised or ""
    return from_elsewhere(str(address), own_host)
