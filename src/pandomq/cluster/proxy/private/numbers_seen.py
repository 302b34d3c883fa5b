"""Remembers which numbered publishes have entered this broker's private queues, so that none enters twice (D11).

The root knows from the log which publishes have taken effect. But private queues are in no log, and outlive a root: if
the entry of a publish was lost with the root, its publisher sends it again, and the next root treats it as new. The
front recognises it by its number, as long as the queues that have it exist.
"""

from pandomq import kernel
from pandomq.broker.publishing.deduplication import label_of
from pandomq.broker.publishing.named_producers import NamedProducers, SequenceVerdict
from pandomq.errors import Fault
from pandomq.limits import NAMED_PRODUCERS_MAX


class NumbersSeen:
    __slots__ = ("_table",)

    def __init__(self) -> None:
        self._table = NamedProducers()

    def is_new(self, vhost: str, user: str, message: kernel.Message, now_ms: int) -> bool:
        """Whether a publish for private queues by this user is new. Its number is recorded, so the same publish is not
        new the next time."""
        try:
            name, number = label_of(message)
        except Fault:
            # The root read the label differently, and let the message pass.
            return True
        table = self._table
        producer = table.find(vhost, user, name) or table.make(vhost, user, name)
        if producer.judge(number) is SequenceVerdict.REPEATED:
            return False
        producer.accept(number)
        producer.take_notes()
        table.settle(producer, now_ms)
        if len(table) > NAMED_PRODUCERS_MAX:
            first = table.first()
            table.forget(*first.key)
        return True


def is_publish(message: kernel.Message) -> bool:
    """Whether it is a numbered publish, and not a dead letter or a delayed message with the headers of one."""
    numbered = message.special & (kernel.SPECIAL_PRODUCER | kernel.SPECIAL_DELAY) == kernel.SPECIAL_PRODUCER
    return numbered and message.find_header(b"x-death") is None
