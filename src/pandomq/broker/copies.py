"""CC and BCC: further routing keys that a publisher put into the headers of a message."""

from collections.abc import Mapping

from pandomq.kernel._fast import Message


def routing_keys_of(message: Message, headers: Mapping[str, object]) -> list[str]:
    """The message's routing key, then those of CC and BCC, each once. Raises the ChannelFault RabbitMQ gives if either
    header is no array of strings. Only needed if message.special has SPECIAL_COPIES."""
    ...


def without_bcc(message: Message) -> Message:
    """The message as consumers may see it; itself if it has no BCC."""
    ...
