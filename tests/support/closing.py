"""Checks of a broker's close: its code, its text and the method that it names as the cause."""

from __future__ import annotations

from tests.support.methods import LAYOUTS, Method


class ClosedByBrokerError(AssertionError):
    """A close method arrived where another method was expected."""

    def __init__(self, method: Method, wanted: str) -> None:
        super().__init__(f"wanted {wanted}, got {method.name} {method.reply_code} {method.reply_text!r}")
        self.method = method


def check_close(method: Method, code: int, text: str, cause: str | None) -> None:
    """Code, text and the ids of the method at fault; a text that ends in … has to begin so."""
    ids = (0, 0) if cause is None else (LAYOUTS[cause].class_id, LAYOUTS[cause].method_id)
    begin = text.removesuffix("…")
    found = method.reply_text if begin == text else method.reply_text[: len(begin)]
    assert (method.reply_code, found, method.class_id, method.method_id) == (code, begin, *ids), method.reply_text
