"""Leases messages, and never releases or ends a lease: all of them must return to the queue after the lease has timed
out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pandomq.sim.clients.data_port.data_speaker import DataSpeaker

if TYPE_CHECKING:
    from pandomq.data_form import Fields
    from pandomq.sim.queues import QueueKind
    from pandomq.sim.scene import Scene

BYTES_MAX: Final = 100_000
TIMEOUT_MS: Final = 1_000


class LeaseAbandoner(DataSpeaker):
    def __init__(self, scene: Scene, name: str, kind: QueueKind, wanted: int) -> None:
        super().__init__(scene, name)
        self._kind = kind
        self._wanted = wanted
        self._made = 0
        self._leased = False

    @property
    def content(self) -> bool:
        return self._wanted <= 0

    def end_wish(self) -> None:
        # One lease is enough, whenever it was made.
        self._wanted = 0 if self._leased else 1

    def begin(self) -> None:
        if self.content:
            return
        self._made += 1
        self.ask(
            "lease",
            queue=self._kind.name,
            name=f"{self.name}-{self._made}",
            messages_max=self.random.randint(1, 4),
            bytes_max=BYTES_MAX,
            timeout_ms=TIMEOUT_MS,
        )

    def hear(self, asked: str, fields: Fields, payload: bytes) -> None:
        self._leased = True
        self._wanted -= 1
        if not self.content:
            self.go_on(self.random.randint(20, 300))
