"""Which numbered publishes have come to this broker's private queues, so that none comes twice (D11).

The root knows by the log what came before. But private queues are in no log, and outlive a root: what they got of an
entry that was lost with it comes again when its publisher sends it again, and to the next root it is new. It is known
here by its number, for as long as the queues live that have it.
"""

from pandomq import kernel
from pandomq.broker.deduplication import label_of
from pandomq.broker.named_producers import NamedProducers, Verdict
from pandomq.errors import Fault
from pandomq.limits import NAMED_PRODUCERS_MAX


class NumbersSeen:
    __slots__ = ("_table",)

    def __init__(self) -> None:
        self._table = NamedProducers()

    def is_new(self, vhost: str, message: kernel.Message, now_ms: int) -> bool:
        """Of what comes for private queues; it is known from now on."""
        if not _is_publish(message):
            return True
        try:
            name, number = label_of(message)
        except Fault:
            # The root let it pass, with other eyes.
            return True
        table = self._table
        producer = table.find(vhost, name) or table.make(vhost, name)
        if producer.judge(number) is Verdict.REPEATED:
            return False
        producer.accept(number)
        producer.take_notes()
        table.settle(producer, now_ms)
        if len(table) > NAMED_PRODUCERS_MAX:
            first = table.first()
            table.forget(first.vhost, first.name)
        return True


def _is_publish(message: kernel.Message) -> bool:
    """Not something that carries the headers of one: a dead letter, or a message that had to wait."""
    numbered = message.special & (kernel.SPECIAL_PRODUCER | kernel.SPECIAL_DELAY) == kernel.SPECIAL_PRODUCER
    return numbered and message.find_header(b"x-death") is None
