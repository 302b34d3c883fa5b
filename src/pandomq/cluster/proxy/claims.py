"""The names of a vhost's private queues on this front, held at the root so that nobody else takes them (R27)."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from pandomq.cluster.proxy.errands import Errands
from pandomq.cluster.proxy.front_channel import unheeded
from pandomq.methods import QueueDeclare, QueueDelete

if TYPE_CHECKING:
    from pandomq.cluster.proxy.lane import Failed
    from pandomq.errors import ChannelFault


class _Claim:
    __slots__ = ("granted", "held", "name", "refused")

    def __init__(self, name: str, granted: Callable[[], None], refused: "Failed") -> None:
        self.name = name
        self.granted = granted
        self.refused = refused
        self.held = False


class Claims(Errands):
    __slots__ = ("_lost", "names")

    def __init__(self, number: int, lost: Callable[[str], None]) -> None:
        """`lost` hears of names that were held and could not be had again after the root had changed."""
        super().__init__(number)
        self._lost = lost
        self.names: dict[str, _Claim] = {}
        """Held, or asked for."""

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def claim(self, name: str, granted: Callable[[], None], refused: "Failed") -> None:
        assert name not in self.names
        claim = self.names[name] = _Claim(name, granted, refused)
        self._ask(claim)

    def release(self, name: str) -> None:
        if self.names.pop(name, None) is not None:
            self.ask(QueueDelete(name), unheeded)

    def ask_all(self) -> None:
        for claim in self.names.values():
            self._ask(claim)

    def _ask(self, claim: _Claim) -> None:
        self.ask(
            QueueDeclare(claim.name, exclusive=True),
            lambda _method, _message: self._granted(claim),
            lambda fault: self._refused(claim, fault),
        )

    def _granted(self, claim: _Claim) -> None:
        if not claim.held and self.names.get(claim.name) is claim:
            claim.held = True
            claim.granted()

    def _refused(self, claim: _Claim, fault: "ChannelFault") -> None:
        if self.names.get(claim.name) is not claim:
            return
        del self.names[claim.name]
        if claim.held:
            self._lost(claim.name)
        else:
            claim.refused(fault)
