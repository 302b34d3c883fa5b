"""The bindings of a vhost's private queues on this front, as the root has to know them: each path once (R27, R31).

The root routes matching messages to the front's outlet, one copy each, whatever the number of private queues; the front
matches them again, by the same exchanges, with its own bindings.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pandomq.cluster.proxy.front_channel import ignore_reply
from pandomq.cluster.proxy.private.control_lane import ControlLane
from pandomq.methods import QueueBind, QueueUnbind

if TYPE_CHECKING:
    from pandomq.broker.exchanges.binding import Binding
    from pandomq.cluster.proxy.lane import Failed
    from pandomq.errors import ChannelFault

_Key = tuple[str, str, bytes]


class _Meta:
    __slots__ = ("arguments", "binding_count", "is_bound", "waiting")

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        self.arguments = dict(arguments)
        self.binding_count = 0
        self.is_bound = False
        self.waiting: list[tuple[Callable[[], None], Failed]] = []


class MetaBindings(ControlLane):
    __slots__ = ("_metas", "outlet")

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.outlet = ""
        """The outlet's name at the root; each trunk has another one."""
        self._metas: dict[_Key, _Meta] = {}

    def __len__(self) -> int:
        return len(self._metas)

    def add(self, binding: "Binding", done: Callable[[], None], refused: "Failed") -> None:
        """A private queue is bound; `done` runs when the root has the binding."""
        key = _key_of(binding)
        meta = self._metas.get(key)
        if meta is None:
            meta = self._metas[key] = _Meta(binding.arguments)
            self._bind(key, meta)
        meta.binding_count += 1
        if meta.is_bound:
            done()
        else:
            meta.waiting.append((done, refused))

    def drop(self, binding: "Binding") -> None:
        key = _key_of(binding)
        meta = self._metas.get(key)
        if meta is None:
            return
        meta.binding_count -= 1
        if not meta.binding_count:
            del self._metas[key]
            source, routing_key, _ = key
            self.ask(QueueUnbind(self.outlet, source, routing_key, meta.arguments), ignore_reply)

    def forget_exchange(self, name: str) -> None:
        """The exchange is deleted, and its bindings with it, here and at the root."""
        for key in [key for key in self._metas if key[0] == name]:
            meta = self._metas.pop(key)
            for done, _ in meta.waiting:
                done()

    def ask_all(self) -> None:
        """Requests all bindings from a new root."""
        for key, meta in self._metas.items():
            meta.is_bound = False
            self._bind(key, meta)

    def _bind(self, key: _Key, meta: _Meta) -> None:
        source, routing_key, _ = key
        self.ask(
            QueueBind(self.outlet, source, routing_key, False, meta.arguments),
            lambda _method, _message: self._bound(meta),
            lambda fault: self._refused(key, meta, fault),
        )

    def _bound(self, meta: _Meta) -> None:
        meta.is_bound = True
        waiting, meta.waiting = meta.waiting, []
        for done, _ in waiting:
            done()

    def _refused(self, key: _Key, meta: _Meta, fault: "ChannelFault") -> None:
        if self._metas.get(key) is meta:
            del self._metas[key]
        waiting, meta.waiting = meta.waiting, []
        for _, refused in waiting:
            refused(fault)


def _key_of(binding: "Binding") -> _Key:
    return binding.source, binding.routing_key, binding.canonical_arguments
