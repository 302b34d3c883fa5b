"""What can go wrong for a client of the data port, by what its user can do about it.

No text here ever holds a password: addresses are named, urls are not.
"""

from __future__ import annotations

from typing import Any, Final

from pandomq import data_form


class DataFailure(Exception):
    """Anything that this package raises on purpose, other than for wrong arguments."""


class BadUrl(DataFailure):
    """What should be the brokers' urls cannot be read."""


class Unreachable(DataFailure):
    """No broker answered, or none could do what was asked, until the time was over. The text says what was tried."""


class BadAnswer(DataFailure):
    """A broker said what makes no sense, or a chunk was damaged on the way; another broker may do better."""


class Refused(DataFailure):
    """The broker understood, and will not do it: trying again will not help."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(code, text)
        self.code = code
        self.text = text

    def __str__(self) -> str:
        return self.text


class NotAllowed(Refused):
    """A wrong password, no access to the vhost, or no right on what was named."""


class NotFound(Refused):
    """There is no such thing."""


class NoSuchStream(NotFound):
    pass


class PreconditionFailed(Refused):
    pass


class OffsetGone(Refused):
    """Retention has dropped what was asked for."""

    def __init__(self, code: int, text: str, first_offset: int) -> None:
        super().__init__(code, text)
        self.args = (code, text, first_offset)
        self.first_offset = first_offset
        """What is left begins here."""


class Elsewhere(Refused):
    """Only the root does that. Callers never see it: the client goes there."""

    def __init__(self, code: int, text: str, root: str) -> None:
        super().__init__(code, text)
        self.args = (code, text, root)
        self.root = root
        """Where it is; empty if that is not known at present."""


class NotNow(Refused):
    """Trying again may help, here or elsewhere. Callers never see it: the client does so until its time is over."""


_BY_CODE: Final[dict[int, type[Refused]]] = {
    data_form.ACCESS_REFUSED: NotAllowed,
    data_form.NOT_FOUND: NotFound,
    data_form.PRECONDITION_FAILED: PreconditionFailed,
    data_form.NOT_NOW: NotNow,
}


def refusal(fields: dict[str, Any], stream: bool) -> Refused:
    """Of an answer with `error`; whether a stream was asked for tells what was not found."""
    code, text = fields.get("error"), fields.get("text")
    if not isinstance(code, int) or not isinstance(text, str):
        return Refused(0, "the broker refused, and did not say why")
    if code == data_form.OFFSET_GONE:
        first_offset = fields.get("first_offset")
        return OffsetGone(code, text, first_offset if isinstance(first_offset, int) else 0)
    if code == data_form.NOT_THE_ROOT:
        root = fields.get("root")
        return Elsewhere(code, text, root if isinstance(root, str) else "")
    if code == data_form.NOT_FOUND and stream:
        return NoSuchStream(code, text)
    return _BY_CODE.get(code, Refused)(code, text)
