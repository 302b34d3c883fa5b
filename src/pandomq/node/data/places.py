"""Where the data port of one broker is, for those who ask."""

import msgspec


class DataPlaces(msgspec.Struct, frozen=True, kw_only=True):
    """Each is HOST:PORT, or empty if there is no such port."""

    told: str = ""
    """What this broker's server properties say; without a host, where its AMQP port was found."""
    told_tls: str = ""
    advertised: str = ""
    """What other brokers tell their clients."""
    advertised_tls: str = ""

    def with_ports(self, plain: int, tls: int) -> "DataPlaces":
        """The same, once it is known on which ports the broker listens."""
        return DataPlaces(
            told=_with_port(self.told, plain),
            told_tls=_with_port(self.told_tls, tls),
            advertised=_with_port(self.advertised, plain),
            advertised_tls=_with_port(self.advertised_tls, tls),
        )

    @property
    def properties(self) -> dict[str, str]:
        """For the server properties."""
        named = {"data": self.told, "data_tls": self.told_tls}
        return {name: place for name, place in named.items() if place}


def _with_port(place: str, port: int) -> str:
    return f"{place.rpartition(':')[0]}:{port}" if place else ""
