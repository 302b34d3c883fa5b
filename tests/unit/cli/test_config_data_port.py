"""Where the data port is, if somebody says so and if nobody does."""

from __future__ import annotations

import pytest

from pandomq.cli.config import data_port
from pandomq.cli.config.load import ConfigurationError, Loaded, load
from pandomq.node.data.places import DataPlaces
from pandomq.runtime.listen import ListenAddress

KEY = {"cluster__key": "a key of sixteen bytes"}


def loaded(**keys: str) -> Loaded:
    return load(None, {f"PANDOMQ_{name.replace('__', '_').upper()}": value for name, value in keys.items()}, {})


def address(**keys: str) -> ListenAddress | None:
    return data_port.data_address(loaded(**keys).configuration)


@pytest.mark.parametrize(
    ("keys", "place"),
    [
        ({}, "127.0.0.1:5680"),
        ({"node__listen": "0.0.0.0:5672"}, "0.0.0.0:5680"),
        ({"node__listen": "10.0.0.1:7000"}, "10.0.0.1:0"),
        ({"node__http": "127.0.0.1:5680"}, "127.0.0.1:0"),
        ({"data__listen": "10.0.0.1:99"}, "10.0.0.1:99"),
    ],
)
def test_the_address_of_the_data_port_follows_its_keys(keys: dict[str, str], place: str) -> None:
    assert str(address(**keys)) == place


def test_the_data_port_may_be_off() -> None:
    assert address(data__listen="off") is None
    assert loaded(data__listen="off").node_settings().data == DataPlaces()


def test_a_default_port_may_be_replaced_by_another_one() -> None:
    assert data_port.may_move(loaded().configuration)
    assert not data_port.may_move(loaded(data__listen="127.0.0.1:5680").configuration)


def test_a_proxy_stands_before_it_where_one_stands_before_amqp() -> None:
    assert not data_port.behind_proxy(loaded().configuration)
    assert data_port.behind_proxy(loaded(node__proxy_protocol="true").configuration)
    assert data_port.behind_proxy(loaded(data__proxy_protocol="true").configuration)
    beside = loaded(node__proxy_protocol="true", data__proxy_protocol="false").configuration
    assert not data_port.behind_proxy(beside)


def test_clients_find_it_where_they_found_amqp() -> None:
    assert loaded().node_settings().data.told == ":5680"
    assert loaded(data__listen="0.0.0.0:99").node_settings().data.told == ":99"
    assert loaded(data__listen="10.0.0.1:99").node_settings().data.told == "10.0.0.1:99"
    elsewhere = loaded(data__advertise="outside:88").node_settings().data
    assert (elsewhere.told, elsewhere.advertised) == ("outside:88", "outside:88")


def test_the_host_of_the_data_port_is_advertised_to_clients_of_other_brokers() -> None:
    settings = loaded(
        node__listen="0.0.0.0:5672", cluster__primaries="n1=box:5672,n2=other:5672", **KEY
    ).node_settings()
    assert settings.data.advertised == "box:5680"


def test_a_secondary_has_none() -> None:
    assert address(cluster__join="box:5672", **KEY) is None


def test_the_bound_port_is_advertised() -> None:
    places = DataPlaces(told=":0", advertised="box:0", advertised_tls="box:0")
    assert places.with_ports(7, 8) == DataPlaces(told=":7", advertised="box:7", advertised_tls="box:8")
    assert places.with_ports(7, 8).properties == {"data": ":7"}


def test_tls_needs_a_certificate() -> None:
    with pytest.raises(ConfigurationError, match=r"but node\.tls\.certificate or node\.tls\.key is not set"):
        loaded(data__tls_listen="127.0.0.1:99")


def test_two_at_one_address() -> None:
    with pytest.raises(ConfigurationError, match=r"node\.http and data\.listen are both"):
        loaded(data__listen="127.0.0.1:15672")
