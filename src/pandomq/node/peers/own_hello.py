"""The hello that this broker sends: about itself, and about the primaries that it knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pandomq import __version__
from pandomq.cluster.hello import OLDEST_VERSION, VERSION, Hello
from pandomq.cluster.limits import INTRODUCED_BYTES_MAX, NONCE_BYTES, REASON_BYTES_MAX

if TYPE_CHECKING:
    from random import Random

    from pandomq.node.log.disk_log import DiskLog
    from pandomq.node.settings import NodeSettings


class OwnHello:
    __slots__ = ("_disk", "_random", "_settings", "life")

    def __init__(self, settings: NodeSettings, disk: DiskLog, random: Random) -> None:
        self._settings = settings
        self._disk = disk
        self._random = random
        self.life = f"{random.getrandbits(128):032x}"

    def say(self, expected: str = "", through: str = "") -> Hello:
        """The hello for one connection: the expected broker, and the broker that relays, if there is one."""
        settings = self._settings.cluster
        data = self._settings.data
        return Hello(
            oldest=OLDEST_VERSION,
            newest=VERSION,
            name=self._settings.name,
            nonce=self._random.randbytes(NONCE_BYTES),
            life=self.life,
            expected=expected,
            cluster_id=self._disk.replication.knowledge.cluster_id,
            address=self.address,
            amqp=settings.advertise,
            http=settings.http,
            version=__version__,
            members=self._introductions(),
            data=data.advertised,
            data_tls=data.advertised_tls,
            through=through,
        )

    @property
    def address(self) -> str:
        """The address at which other brokers dial this one."""
        settings = self._settings.cluster
        own = next((member.address for member in settings.primaries if member.name == self._settings.name), "")
        return own or settings.links or settings.advertise

    @property
    def where_primaries_are(self) -> str:
        named = ", ".join(f"{name} at {address}" for name, address in self._introductions())
        return named[: REASON_BYTES_MAX // 8] or "this broker does not know them yet"

    def _introductions(self) -> tuple[tuple[str, str], ...]:
        """The primaries, for a broker that knows only this one; as many as fit."""
        named: list[tuple[str, str]] = []
        size = 0
        for name, member in self._disk.replication.knowledge.membership.members.items():
            size += len(name) + len(member.address) + 8
            if size <= INTRODUCED_BYTES_MAX:
                named.append((name, member.address))
        return tuple(named)
