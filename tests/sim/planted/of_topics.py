"""Bugs of topic keys, and of the bindings that fronts report to the root."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pandomq.broker.exchanges import topic
from pandomq.broker.exchanges.exchange import Exchange
from pandomq.broker.exchanges.topic import TopicExchange
from pandomq.broker.publishing.routing import Router
from pandomq.cluster.proxy.private import private_queues
from pandomq.cluster.proxy.private.meta_bindings import MetaBindings, _key_of
from pandomq.methods import QueueUnbind
from tests.sim.planted.planted_bug import Patch, PlantedBug

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pandomq.broker.exchanges.binding import Binding, Destination
    from pandomq.broker.exchanges.exchange import QueueDestination
    from pandomq.cluster.proxy.front import Front
    from pandomq.cluster.proxy.front_channel import FrontChannel
    from pandomq.cluster.proxy.lane import Failed

NODES: Final = 3


# Reports of fronts to the root.


def _leave_bound(patch: Patch) -> None:
    def silent(bindings: MetaBindings, binding: Binding) -> None:
        meta = bindings._metas.get(_key_of(binding))
        if meta is not None:
            meta.binding_count -= 1
            if not meta.binding_count:
                del bindings._metas[_key_of(binding)]

    patch.set(MetaBindings, "drop", silent)


def _drop_when_answered(patch: Patch) -> None:
    def late(bindings: MetaBindings, binding: Binding) -> None:
        key = _key_of(binding)
        meta = bindings._metas.get(key)
        if meta is None:
            return
        meta.binding_count -= 1

        def unbound(_method: object, _message: object) -> None:
            if not meta.binding_count and bindings._metas.get(key) is meta:
                del bindings._metas[key]

        if not meta.binding_count:
            meta.is_bound = False
            bindings.ask(QueueUnbind(bindings.outlet, key[0], key[1], meta.arguments), unbound)

    patch.set(MetaBindings, "drop", late)


def _unbind_for_all(patch: Patch) -> None:
    unbind = private_queues.unbind

    def for_all(front: Front, channel: FrontChannel, method: QueueUnbind) -> None:
        metas = front.trunk_of(channel.client.vhost).bindings._metas
        for (source, routing_key, _), meta in metas.items():
            if source == method.exchange and routing_key == method.routing_key:
                meta.binding_count = 1
        unbind(front, channel, method)

    patch.set(private_queues, "unbind", for_all)


def _answer_bind_at_once(patch: Patch) -> None:
    add = MetaBindings.add

    def hasty(bindings: MetaBindings, binding: Binding, done: Callable[[], None], refused: Failed) -> None:
        add(bindings, binding, lambda: None, refused)
        done()

    patch.set(MetaBindings, "add", hasty)


def _rebind_one_key(patch: Patch) -> None:
    def one_each(bindings: MetaBindings) -> None:
        asked: set[str] = set()
        for key, meta in bindings._metas.items():
            meta.is_bound = False
            if key[0] in asked:
                bindings._bound(meta)
            else:
                asked.add(key[0])
                bindings._bind(key, meta)

    patch.set(MetaBindings, "ask_all", one_each)


def _forget_waiting(patch: Patch) -> None:
    def confirmed_only(bindings: MetaBindings) -> None:
        confirmed = {key[0] for key, meta in bindings._metas.items() if meta.is_bound}
        for key, meta in bindings._metas.items():
            if meta.is_bound or key[0] not in confirmed:
                meta.is_bound = False
                bindings._bind(key, meta)
            else:
                bindings._bound(meta)

    patch.set(MetaBindings, "ask_all", confirmed_only)


def _remember_unbound(patch: Patch) -> None:
    drop, ask_all = MetaBindings.drop, MetaBindings.ask_all
    unbound: dict[int, tuple[MetaBindings, set[tuple[str, str, bytes]]]] = {}
    """The object itself is kept, so that no other object gets its id."""

    def noting(bindings: MetaBindings, binding: Binding) -> None:
        drop(bindings, binding)
        if _key_of(binding) not in bindings._metas:
            unbound.setdefault(id(bindings), (bindings, set()))[1].add(_key_of(binding))

    def without_unbound(bindings: MetaBindings) -> None:
        _, keys = unbound.get(id(bindings), (bindings, set()))
        kept = bindings._metas
        # An exchange with one key is bound in any case.
        several = {key[0] for key in kept if key not in keys}
        skipped = {key: meta for key, meta in kept.items() if key in keys and key[0] in several}
        bindings._metas = {key: meta for key, meta in kept.items() if key not in skipped}
        ask_all(bindings)
        bindings._metas = kept
        for meta in skipped.values():
            bindings._bound(meta)

    patch.set(MetaBindings, "drop", noting)
    patch.set(MetaBindings, "ask_all", without_unbound)


# Matching of topic keys.


def _need_one_word(patch: Patch) -> None:
    def match(exchange: TopicExchange, routing_key: str, headers: Mapping[str, object]) -> Iterable[Destination]:
        found: list[Destination] = []
        here: list[Any] = [exchange._root]
        behind: list[Any] = []
        for word in topic._words(routing_key):
            ahead: list[Any] = []
            late: list[Any] = []
            for node in (*here, *behind):
                ahead += [child for child in (node.children.get(word), node.one_word) if child is not None]
                if node.any_words is not None and node.any_words not in behind:
                    late.append(node.any_words)
            here, behind = ahead, behind + late
        for node in (*here, *behind):
            if node.destinations is not None:
                found.extend(node.destinations)
        return found

    patch.set(TopicExchange, "match", match)


def _copy_per_key(patch: Patch) -> None:
    walk = Router._walk
    matched: list[Any] = []

    def noting(
        router: Router,
        start: Exchange,
        routing_keys: Sequence[str],
        headers: Mapping[str, object],
        queues: dict[QueueDestination, None],
    ) -> Iterable[str]:
        passed = walk(router, start, routing_keys, headers, queues)
        matched.clear()
        if isinstance(start, TopicExchange):
            matched.extend(one for one in start.match(routing_keys[0], headers) if not isinstance(one, Exchange))
        return passed

    def chosen(router: Router, queues: Iterable[QueueDestination]) -> list[QueueDestination]:
        return [one for one in matched or queues if router.leads_to is None or router.leads_to(one)]

    patch.set(Router, "_walk", noting)
    patch.set(Router, "_chosen", chosen)


def _prune_longer(patch: Patch) -> None:
    patch.set(topic._Node, "useless", property(lambda node: not node.destinations))


def _keep_plans(patch: Patch) -> None:
    def key_of(exchange: TopicExchange, binding: Binding) -> str | None:
        return None if topic.ANY_WORDS in binding.routing_key.split(".") else binding.routing_key

    patch.set(TopicExchange, "key_of", key_of)


PLANTED_BUGS: Final = (
    PlantedBug(
        "unbind-stays-at-root",
        "A front does not forward unbinds of its private queues to the root.",
        _leave_bound,
        NODES,
    ),
    PlantedBug(
        "unbind-undone-by-new-root",
        "A front repeats a binding to a new root that it was removing at the last root.",
        _drop_when_answered,
        NODES,
    ),
    PlantedBug(
        "unbind-for-all-queues",
        "An unbind at the root removes the binding of other queues with the same key.",
        _unbind_for_all,
        NODES,
    ),
    PlantedBug(
        "bind-before-root", "A front answers a bind before the root has executed it.", _answer_bind_at_once, NODES
    ),
    PlantedBug(
        "one-key-rebound", "A front repeats only one key of each exchange to a new root.", _rebind_one_key, NODES
    ),
    PlantedBug(
        "waiting-bind-forgotten",
        "A front does not repeat a waiting bind to the next root when the root fails.",
        _forget_waiting,
        NODES,
    ),
    PlantedBug(
        "bound-again-forgotten",
        "A front does not report to a new root a binding that was once removed and made again.",
        _remember_unbound,
        NODES,
    ),
    PlantedBug("hash-needs-a-word", "A `#` in a topic key does not match zero words.", _need_one_word, NODES),
    PlantedBug("copy-per-key", "A queue gets a copy of a message for each of its matching keys.", _copy_per_key, NODES),
    PlantedBug("unbind-prunes-longer", "An unbind of a topic key also removes longer keys.", _prune_longer, NODES),
    PlantedBug("stale-plans-for-star", "A binding with `*` does not invalidate cached routes.", _keep_plans, NODES),
)
