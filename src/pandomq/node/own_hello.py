"""What this broker says of itself to others, and of the primaries that it knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pandomq import __version__
from pandomq.cluster.hello import OLDEST_VERSION, VERSION, Hello
from pandomq.cluster.limits import INTRODUCED_BYTES_MAX, NONCE_BYTES, REASON_BYTES_MAX

if TYPE_CHECKING:
    from random import Random

    from pandomq.node.disk_log import DiskLog
    from pandomq.node.settings import NodeSettings


class OwnHello:
    __slots__ = ("_disk", "_random", "_settings", "life")

    def __init__(self, settings: NodeSettings, disk: DiskLog, random: Random) -> None:
        self._settings = settings
        self._disk = disk
        self._random = random
        self.life = f"{random.getrandbits(128):032x}"

    def say(self, expected: str = "", through: str = "") -> Hello:
        """For one connection: to whom, and who passes it on, if anybody does."""
        settings = self._settings.cluster
        data = self._settings.data
        return Hello(
            oldest=OLDEST_VERSION,
            newest=VERSION,
            name=self._settings.name,
            nonce=self._random.randbytes(NONCE_BYTES),
            life=self.life,
            expected=expected,
            cluster_id=self._disk.cluster_id,
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
        """Where other brokers dial this one."""
        settings = self._settings.cluster
        own = next((member.address for member in settings.primaries if member.name == self._settings.name), "")
        return own or settings.links or settings.advertise

    @property
    def where_primaries_are(self) -> str:
        named = ", ".join(f"{name} at {address}" for name, address in self._introductions())
        return named[: REASON_BYTES_MAX // 8] or "it knows none yet"

    def _introductions(self) -> tuple[tuple[str, str], ...]:
        """The primaries, for who knows only this broker; as many as fit."""
        named: list[tuple[str, str]] = []
        size = 0
        for name, member in self._disk.replication.notices.membership.members.items():
            size += len(name) + len(member.address) + 8
            if size <= INTRODUCED_BYTES_MAX:
                named.append((name, member.address))
        return tuple(named)
