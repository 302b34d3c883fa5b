"""Addresses of one broker's data port, for clients and other brokers."""

import msgspec


class DataPlaces(msgspec.Struct, frozen=True, kw_only=True):
    """Each is HOST:PORT, or empty if there is no such port."""

    told: str = ""
    """The address in this broker's server properties; without a host, the one at which the client found the AMQP
    port."""
    told_tls: str = ""
    advertised: str = ""
    """The part that other brokers announce to their clients."""
    advertised_tls: str = ""

    def with_ports(self, plain: int, tls: int) -> "DataPlaces":
        """These places with the ports on which the broker listens."""
        return DataPlaces(
            told=_with_port(self.told, plain),
            told_tls=_with_port(self.told_tls, tls),
            advertised=_with_port(self.advertised, plain),
            advertised_tls=_with_port(self.advertised_tls, tls),
        )

    @property
    def properties(self) -> dict[str, str]:
        """The addresses as server properties."""
        named = {"data": self.told, "data_tls": self.told_tls}
        return {name: place for name, place in named.items() if place}


def _with_port(place: str, port: int) -> str:
    return f"{place.rpartition(':')[0]}:{port}" if place else ""
