"""The failures of a client of the data port, by what the user can do about them.

No text here ever contains a password: it may contain addresses, but no urls.
"""

from __future__ import annotations

from typing import Any, Final

from pandomq import data_form


class DataFailure(Exception):
    """Any exception that this package raises on purpose, except for wrong arguments."""


class BadUrl(DataFailure):
    """The brokers' urls are malformed."""


class Unreachable(DataFailure):
    """No broker answered, or none could carry out the request, until the timeout. The text lists the attempts."""


class BadAnswer(DataFailure):
    """A broker's answer is malformed, or a chunk was damaged on the way; another broker may do better."""


class Refused(DataFailure):
    """The broker rejected the request: trying again will not help."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(code, text)
        self.code = code
        self.text = text

    def __str__(self) -> str:
        return self.text


class NotAllowed(Refused):
    """A wrong password, no access to the vhost, or no right on the named object."""


class NotFound(Refused):
    """The object does not exist."""


class NoSuchStream(NotFound):
    pass


class PreconditionFailed(Refused):
    pass


class OffsetGone(Refused):
    """Retention has removed the requested offset."""

    def __init__(self, code: int, text: str, first_offset: int) -> None:
        super().__init__(code, text)
        self.args = (code, text, first_offset)
        self.first_offset = first_offset
        """The first offset that is left."""


class Elsewhere(Refused):
    """Only the root serves the request. Callers never get this failure: the client connects to the root."""

    def __init__(self, code: int, text: str, root: str) -> None:
        super().__init__(code, text)
        self.args = (code, text, root)
        self.root = root
        """The root's address; empty if it is unknown at present."""


class NotNow(Refused):
    """Trying again may help, here or at another broker. Callers never get it: the client retries until the timeout."""


_BY_CODE: Final[dict[int, type[Refused]]] = {
    data_form.ACCESS_REFUSED: NotAllowed,
    data_form.NOT_FOUND: NotFound,
    data_form.PRECONDITION_FAILED: PreconditionFailed,
    data_form.NOT_NOW: NotNow,
}


def refusal(fields: dict[str, Any], stream: bool) -> Refused:
    """The failure for an answer with `error`; `stream` tells whether the object that was not found is a stream."""
    code, text = fields.get("error"), fields.get("text")
    if not isinstance(code, int) or not isinstance(text, str):
        return Refused(0, "the broker rejected the request without a reason")
    if code == data_form.OFFSET_GONE:
        first_offset = fields.get("first_offset")
        return OffsetGone(code, text, first_offset if isinstance(first_offset, int) else 0)
    if code == data_form.NOT_THE_ROOT:
        root = fields.get("root")
        return Elsewhere(code, text, root if isinstance(root, str) else "")
    if code == data_form.NOT_FOUND and stream:
        return NoSuchStream(code, text)
    return _BY_CODE.get(code, Refused)(code, text)
