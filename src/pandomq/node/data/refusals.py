"""Why something is not done, in the codes of the data port."""

from __future__ import annotations

from typing import Any, Final

from pandomq import data_form
from pandomq.errors import Fault

_OF_FAULTS: Final = {320: data_form.NOT_NOW, 402: data_form.NOT_FOUND, 530: data_form.ACCESS_REFUSED}
"""Where AMQP has another code for it than a client that asks one thing at a time needs to know."""


class Refused(Exception):
    """Raised by handlers, caught where their answer is made. `fields` go into the answer."""

    def __init__(self, code: int, text: str, **fields: Any) -> None:
        super().__init__(code, text)
        self.code = code
        self.text = text
        self.fields = fields


def of_fault(fault: Fault) -> Refused:
    """What the broker refuses, in its own words."""
    return Refused(_OF_FAULTS.get(fault.reply_code, fault.reply_code), fault.reply_text)


def bad_request(text: str) -> Refused:
    return Refused(data_form.BAD_REQUEST, text)


def not_found(text: str) -> Refused:
    return Refused(data_form.NOT_FOUND, text)


def not_now(text: str) -> Refused:
    return Refused(data_form.NOT_NOW, text)


def offset_gone(text: str, first_offset: int) -> Refused:
    return Refused(data_form.OFFSET_GONE, text, first_offset=first_offset)
