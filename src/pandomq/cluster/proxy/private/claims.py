"""The names of a vhost's private queues on this front, held at the root so that no other broker takes them (R27)."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from pandomq.cluster.proxy.front_channel import ignore_reply
from pandomq.cluster.proxy.private.control_lane import ControlLane
from pandomq.methods import QueueDeclare, QueueDelete

if TYPE_CHECKING:
    from pandomq.cluster.proxy.lane import Failed
    from pandomq.errors import ChannelFault


class _Claim:
    __slots__ = ("granted", "is_asked", "is_dropped", "is_held", "name", "refused")

    def __init__(self, name: str, granted: Callable[[], None], refused: "Failed") -> None:
        self.name = name
        self.granted = granted
        self.refused = refused
        self.is_held = False
        """The queue exists."""
        self.is_asked = False
        """The root has not answered yet."""
        self.is_dropped = False
        """The name is no longer needed."""


class Claims(ControlLane):
    __slots__ = ("_lost", "names")

    def __init__(self, number: int, lost: Callable[[str], None]) -> None:
        """`lost` is called for each name that was held and could not be reserved again after the root had changed."""
        super().__init__(number)
        self._lost = lost
        self.names: dict[str, _Claim] = {}
        """Names that are held or requested."""

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def claim(self, name: str, granted: Callable[[], None], refused: "Failed") -> None:
        assert name not in self.names
        claim = self.names[name] = _Claim(name, granted, refused)
        self._ask(claim)

    def release(self, name: str) -> None:
        """A name that was not granted is not deleted: it may belong to another broker."""
        claim = self.names.pop(name, None)
        if claim is None:
            return
        claim.is_dropped = True
        if not claim.is_asked:
            self.ask(QueueDelete(name), ignore_reply)

    def forget(self, name: str) -> None:
        """The name belongs to another broker."""
        claim = self.names.pop(name, None)
        if claim is not None:
            claim.is_dropped = True

    def ask_all(self) -> None:
        for claim in self.names.values():
            self._ask(claim)

    def _ask(self, claim: _Claim) -> None:
        claim.is_asked = True
        self.ask(
            QueueDeclare(claim.name, exclusive=True),
            lambda _method, _message: self._granted(claim),
            lambda fault: self._refused(claim, fault),
        )

    def _granted(self, claim: _Claim) -> None:
        claim.is_asked = False
        if claim.is_dropped:
            if claim.name not in self.names:
                self.ask(QueueDelete(claim.name), ignore_reply)
        elif not claim.is_held:
            claim.is_held = True
            claim.granted()

    def _refused(self, claim: _Claim, fault: "ChannelFault") -> None:
        if claim.is_dropped:
            return
        del self.names[claim.name]
        if claim.is_held:
            self._lost(claim.name)
        else:
            claim.refused(fault)
