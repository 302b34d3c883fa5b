"""Bugs of brokers that serve in the root's name, and of roots that serve those."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pandomq.broker.places import Settling
from pandomq.broker.producers import Producers
from pandomq.broker.vhost import Vhost
from pandomq.cluster.proxy.front_channel import FrontChannel
from pandomq.cluster.proxy.meta_bindings import MetaBindings
from pandomq.sim.mutations.mutation import Mutation, Patch

if TYPE_CHECKING:
    from pandomq import kernel
    from pandomq.broker.channel import Channel
    from pandomq.methods import Method

NODES: Final = 3


def _echo(patch: Patch) -> None:
    patch.set(Vhost, "outlet_to", lambda vhost, broker: None)


def _take_again(patch: Patch) -> None:
    number_publishes = Producers.number_publishes

    def forgetful(producers: Producers, channel: Channel) -> None:
        number_publishes(producers, channel)
        assert channel.numbering is not None
        channel.numbering.known = 0

    patch.set(Producers, "number_publishes", forgetful)


def _trust_commit(patch: Patch) -> None:
    def trusting(channel: FrontChannel, method: Method, _message: kernel.Message | None) -> None:
        call, channel.in_doubt = channel.in_doubt, None
        if call is not None:
            call.answer(method)

    patch.set(FrontChannel, "_opened_above", trusting)


def _drop_acks(patch: Patch) -> None:
    patch.set(Settling, "settle", lambda settling, queue, sequence, term, method_id: None)


def _settle_by_tag(patch: Patch) -> None:
    def by_tag(settling: Settling, queue: kernel.Queue, sequence: int, term: int, method_id: int) -> None:
        channel = settling._channel
        channel.settle_elsewhere(channel, sequence, method_id)

    patch.set(Settling, "settle", by_tag)


def _bind_once(patch: Patch) -> None:
    patch.set(MetaBindings, "ask_all", lambda bindings: None)


MUTATIONS: Final = (
    Mutation("front-hears-itself", "what a front forwards comes back to it from the root", _echo, NODES, fronts=True),
    Mutation("resend-taken-again", "what is sent again to a new root is taken again", _take_again, NODES, fronts=True),
    Mutation(
        "commit-in-doubt-done", "a commit whose answer was lost counts as done", _trust_commit, NODES, fronts=True
    ),
    Mutation("lost-acks-proven", "acks of what an earlier root delivered are dropped", _drop_acks, NODES, acks=True),
    Mutation("settled-by-tag", "acks are sent again to a new root by tag", _settle_by_tag, NODES, acks=True),
    Mutation("bound-at-first-root", "a new root is not told what is bound", _bind_once, NODES, fronts=True),
)
