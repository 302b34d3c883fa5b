"""Faults, sorted by what they close, with RabbitMQ's reply texts.

A fault is raised where it is found and caught where its scope ends: a ChannelFault closes one channel, a
ConnectionFault one connection, a NodeFault makes this broker give up its role. Bugs are not faults: they are assertions
and are never caught.

The functions below build one fault for each AMQP reply code; the text gets the prefix RabbitMQ gives it. The code that
raises a fault may leave class and method id 0: the handler that knows the method fills them in.
"""

from typing import Self

from pandomq.limits import REPLY_TEXT_BYTES_MAX


class Fault(Exception):
    """A peer did or requested something that cannot be granted."""

    __slots__ = ("class_id", "method_id", "reply_code", "reply_text")

    def __init__(self, reply_code: int, reply_text: str, class_id: int = 0, method_id: int = 0) -> None:
        super().__init__(reply_code, reply_text, class_id, method_id)
        self.reply_code = reply_code
        self.reply_text = reply_text
        self.class_id = class_id
        self.method_id = method_id

    def __str__(self) -> str:
        return f"{self.reply_code} {self.reply_text}"

    def at(self, class_id: int, method_id: int) -> Self:
        """This fault with the method that caused it, unless it has one already."""
        if self.class_id == 0 and self.method_id == 0:
            self.class_id = class_id
            self.method_id = method_id
        return self

    def kept(self) -> Self:
        """This fault as a value to keep: without references to the frames it came through."""
        self.__traceback__ = self.__context__ = self.__cause__ = None
        return self


class ChannelFault(Fault):
    """Closes the channel it happened on."""

    __slots__ = ()


class ConnectionFault(Fault):
    """Closes the connection it happened on."""

    __slots__ = ()


class NodeFault(Fault):
    """This broker cannot continue in its role."""

    __slots__ = ()


def _text(name: str, explanation: str) -> str:
    # A reply text is a short string: RabbitMQ cuts longer ones to 252 octets and adds three dots.
    text = f"{name} - {explanation}"
    encoded = text.encode("utf-8", "surrogateescape")
    if len(encoded) <= REPLY_TEXT_BYTES_MAX:
        return text
    return encoded[: REPLY_TEXT_BYTES_MAX - 3].decode("utf-8", "ignore") + "..."


# Soft errors: they close a channel, or travel in basic.return.


def content_too_large(explanation: str) -> ChannelFault:
    return ChannelFault(311, _text("CONTENT_TOO_LARGE", explanation))


def no_route(explanation: str) -> ChannelFault:
    return ChannelFault(312, _text("NO_ROUTE", explanation))


def no_consumers(explanation: str) -> ChannelFault:
    return ChannelFault(313, _text("NO_CONSUMERS", explanation))


def access_refused(explanation: str) -> ChannelFault:
    return ChannelFault(403, _text("ACCESS_REFUSED", explanation))


def not_found(explanation: str) -> ChannelFault:
    return ChannelFault(404, _text("NOT_FOUND", explanation))


def resource_locked(explanation: str) -> ChannelFault:
    return ChannelFault(405, _text("RESOURCE_LOCKED", explanation))


def precondition_failed(explanation: str) -> ChannelFault:
    return ChannelFault(406, _text("PRECONDITION_FAILED", explanation))


# Hard errors: they close the connection.


def connection_forced(explanation: str) -> ConnectionFault:
    return ConnectionFault(320, _text("CONNECTION_FORCED", explanation))


def invalid_path(explanation: str) -> ConnectionFault:
    return ConnectionFault(402, _text("INVALID_PATH", explanation))


def login_refused(explanation: str) -> ConnectionFault:
    """Access refused before a channel exists: the same code and words, but the connection ends."""
    return ConnectionFault(403, _text("ACCESS_REFUSED", explanation))


def frame_error(explanation: str) -> ConnectionFault:
    return ConnectionFault(501, _text("FRAME_ERROR", explanation))


def syntax_error(explanation: str) -> ConnectionFault:
    return ConnectionFault(502, _text("SYNTAX_ERROR", explanation))


def command_invalid(explanation: str) -> ConnectionFault:
    return ConnectionFault(503, _text("COMMAND_INVALID", explanation))


def channel_error(explanation: str) -> ConnectionFault:
    return ConnectionFault(504, _text("CHANNEL_ERROR", explanation))


def unexpected_frame(explanation: str) -> ConnectionFault:
    return ConnectionFault(505, _text("UNEXPECTED_FRAME", explanation))


def resource_error(explanation: str) -> ConnectionFault:
    return ConnectionFault(506, _text("RESOURCE_ERROR", explanation))


def not_allowed(explanation: str) -> ConnectionFault:
    return ConnectionFault(530, _text("NOT_ALLOWED", explanation))


def not_implemented(explanation: str) -> ConnectionFault:
    return ConnectionFault(540, _text("NOT_IMPLEMENTED", explanation))


def internal_error(explanation: str) -> ConnectionFault:
    return ConnectionFault(541, _text("INTERNAL_ERROR", explanation))
