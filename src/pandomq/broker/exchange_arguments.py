"""What exchange.declare may ask for, and when a second declare means the same exchange.

Raises the faults RabbitMQ 4 gives, with its texts.
"""

from pandomq.broker.exchanges.exchange import Exchange
from pandomq.methods import ExchangeDeclare


def check_declare(declare: ExchangeDeclare) -> None:
    """Of a new exchange: its type is known and its arguments are valid. Raises ChannelFault (406).

    Names (amq.*, the default exchange) and permissions are the caller's business.
    """


def check_equivalent(exchange: Exchange, declare: ExchangeDeclare, vhost: str) -> None:
    """Of an exchange that exists (not passive): raises ChannelFault (406, inequivalent arg …) unless it is declared as it is."""
