"""The rights that each operation needs on its objects, over AMQP and on the data port.

Handlers use this table (`access.demand`, `node.data.rights`), and the tables of docs/security.md are made from it.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from pandomq.broker.administration.permissions import Right

QUEUE: Final = "queue"
EXCHANGE: Final = "exchange"
SOURCE: Final = "source exchange"
DESTINATION: Final = "destination exchange"
DEAD_LETTERS: Final = "dead-letter exchange"
ALTERNATE: Final = "alternate exchange"
ROUTING_KEY: Final = "routing key"
SOME_EXCHANGE: Final = "some exchange"

ANY_RIGHT: Final = tuple(Right)
_CONFIGURE: Final = (Right.CONFIGURE,)
_WRITE: Final = (Right.WRITE,)
_READ: Final = (Right.READ,)


class Operation(NamedTuple):
    name: str
    """An AMQP method, or a request of the data port; with the condition that makes a difference, in words."""
    needs: Mapping[str, tuple[Right, ...]]
    """By object: one of these rights. A routing key needs it where topic permissions are set, on a topic exchange."""
    note: str = ""

    @property
    def method(self) -> str:
        return self.name.partition(",")[0]


QUEUE_DECLARE: Final = Operation("queue.declare", {QUEUE: _CONFIGURE}, "The right is also needed if the queue exists.")
QUEUE_DECLARE_PASSIVE: Final = Operation("queue.declare, passive", {QUEUE: ANY_RIGHT})
QUEUE_DECLARE_DEAD_LETTERS: Final = Operation(
    "queue.declare, new with x-dead-letter-exchange",
    {QUEUE: _READ, DEAD_LETTERS: _WRITE},
    "These rights are needed in addition to those of `queue.declare`.",
)
QUEUE_DELETE: Final = Operation("queue.delete", {QUEUE: _CONFIGURE})
QUEUE_PURGE: Final = Operation("queue.purge", {QUEUE: _READ})
QUEUE_BIND: Final = Operation("queue.bind", {QUEUE: _WRITE, EXCHANGE: _READ, ROUTING_KEY: _READ})
QUEUE_UNBIND: Final = Operation("queue.unbind", QUEUE_BIND.needs)
EXCHANGE_DECLARE: Final = Operation(
    "exchange.declare", {EXCHANGE: _CONFIGURE}, "The right is also needed if the exchange exists."
)
EXCHANGE_DECLARE_PASSIVE: Final = Operation("exchange.declare, passive", {EXCHANGE: ANY_RIGHT})
EXCHANGE_DECLARE_ALTERNATE: Final = Operation(
    "exchange.declare, new with alternate-exchange",
    {EXCHANGE: _READ, ALTERNATE: _WRITE},
    "These rights are needed in addition to those of `exchange.declare`.",
)
EXCHANGE_DELETE: Final = Operation("exchange.delete", {EXCHANGE: _CONFIGURE})
EXCHANGE_BIND: Final = Operation("exchange.bind", {DESTINATION: _WRITE, SOURCE: _READ, ROUTING_KEY: _READ})
EXCHANGE_UNBIND: Final = Operation("exchange.unbind", EXCHANGE_BIND.needs)
BASIC_PUBLISH: Final = Operation(
    "basic.publish",
    {EXCHANGE: _WRITE, ROUTING_KEY: _WRITE},
    "The exchange without a name is `amq.default`. The rights are needed for keys in CC and BCC, too. `user_id` must "
    "be the user's own name, unless the user has the tag `impersonator`. The name of a producer (`x-producer`) belongs "
    "to the user: the same name of another user denotes another producer.",
)
BASIC_CONSUME: Final = Operation("basic.consume", {QUEUE: _READ})
BASIC_GET: Final = Operation("basic.get", {QUEUE: _READ})

_OF_THE_CHANNEL: Final = "These methods affect only the channel and the messages delivered on it."
AMQP: Final = (
    QUEUE_DECLARE,
    QUEUE_DECLARE_PASSIVE,
    QUEUE_DECLARE_DEAD_LETTERS,
    QUEUE_DELETE,
    QUEUE_PURGE,
    QUEUE_BIND,
    QUEUE_UNBIND,
    EXCHANGE_DECLARE,
    EXCHANGE_DECLARE_PASSIVE,
    EXCHANGE_DECLARE_ALTERNATE,
    EXCHANGE_DELETE,
    EXCHANGE_BIND,
    EXCHANGE_UNBIND,
    BASIC_PUBLISH,
    BASIC_CONSUME,
    BASIC_GET,
    *(
        Operation(name, {}, _OF_THE_CHANNEL)
        for name in (
            "basic.ack",
            "basic.nack",
            "basic.reject",
            "basic.qos",
            "basic.cancel",
            "basic.recover",
            "basic.recover-async",
            "tx.select",
            "tx.commit",
            "tx.rollback",
            "confirm.select",
            "channel.open",
            "channel.flow",
            "channel.close",
            "access.request",
        )
    ),
)

_QUERY: Final = "The query is the user's own: another user's query of the same name is another query."
DATA: Final[Mapping[str, Operation]] = {
    operation.name: operation
    for operation in (
        Operation("streams", {QUEUE: _READ}, "The answer lists the streams that the user may read."),
        Operation(
            "range", {QUEUE: _READ}, "Here and below, the queue is the stream, or the queue whose messages are leased."
        ),
        Operation("offset_at", {QUEUE: _READ}),
        Operation("index", {QUEUE: _READ}),
        Operation("read", {QUEUE: _READ}),
        Operation("stored_offsets", {QUEUE: _READ}),
        Operation("store_offset", {QUEUE: _READ}, "A name belongs to the user who stored an offset under it first."),
        Operation("stage", {SOME_EXCHANGE: _WRITE}, f"Each message also needs the rights of `basic.publish`. {_QUERY}"),
        Operation("commit", {SOME_EXCHANGE: _WRITE}, _QUERY),
        Operation("drop", {}, _QUERY),
        Operation("last_batch", {}, _QUERY),
        Operation("lease", {QUEUE: _READ}, "The right is also needed for an empty queue."),
        Operation("release", {QUEUE: _READ}),
        Operation("end_lease", {QUEUE: _READ}),
    )
}
"""By request. Each needs access to the vhost, which any permissions there grant."""
