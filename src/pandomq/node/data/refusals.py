"""The reasons of refusals, in the codes of the data port."""

from __future__ import annotations

from typing import Any, Final

from pandomq import data_form
from pandomq.errors import Fault

_OF_FAULTS: Final = {320: data_form.NOT_NOW, 402: data_form.NOT_FOUND, 530: data_form.ACCESS_REFUSED}
"""The faults for which the data port has another code than AMQP: one that is enough for a client that sends one request
at a time."""


class RequestRefused(Exception):
    """Raised by handlers, caught where their answer is made. `fields` go into the answer."""

    def __init__(self, code: int, text: str, **fields: Any) -> None:
        super().__init__(code, text)
        self.code = code
        self.text = text
        self.fields = fields


def of_fault(fault: Fault) -> RequestRefused:
    """The broker's fault, with its own text."""
    return RequestRefused(_OF_FAULTS.get(fault.reply_code, fault.reply_code), fault.reply_text)


def bad_request(text: str) -> RequestRefused:
    return RequestRefused(data_form.BAD_REQUEST, text)


def not_found(text: str) -> RequestRefused:
    return RequestRefused(data_form.NOT_FOUND, text)


def not_now(text: str) -> RequestRefused:
    return RequestRefused(data_form.NOT_NOW, text)


def offset_gone(text: str, first_offset: int) -> RequestRefused:
    return RequestRefused(data_form.OFFSET_GONE, text, first_offset=first_offset)
