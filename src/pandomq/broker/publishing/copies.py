"""CC and BCC: further routing keys that a publisher put into the headers of a message.

Both are arrays of strings; entries of other types are ignored, as in RabbitMQ. Consumers see CC and never BCC. Only
messages with SPECIAL_COPIES have either.
"""

from collections.abc import Mapping
from typing import Final

from pandomq.broker.field_text import name_of, type_name
from pandomq.errors import precondition_failed
from pandomq.fieldtable import OctetString
from pandomq.kernel import Message
from pandomq.properties import read_headers, replace_headers

CC: Final = "CC"
BCC: Final = "BCC"


def routing_keys_of(message: Message, headers: Mapping[str, object]) -> list[str]:
    """The message's own routing key, then those of CC and BCC, each once. Raises ChannelFault (406) for other types."""
    keys = {message.routing_key: None}
    for name in (CC, BCC):
        if name not in headers:
            continue
        copies = headers[name]
        if not isinstance(copies, list):
            raise precondition_failed(f'invalid message: {{unacceptable_type_in_header,"{name}",{type_name(copies)}}}')
        for key in copies:
            if isinstance(key, str | OctetString):
                keys[name_of(key)] = None
    return list(keys)


def without_bcc(message: Message) -> Message:
    """The message as consumers may see it; itself if it has no BCC."""
    headers = read_headers(message.header)
    if BCC not in headers:
        return message
    del headers[BCC]
    # Headers that are empty now stay as an empty table, as in RabbitMQ.
    return Message(message.routing, replace_headers(message.header, headers), message.body)
