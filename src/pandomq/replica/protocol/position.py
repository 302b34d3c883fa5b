"""How logs compare."""

from typing import Final

import msgspec

from pandomq.ids import LogIndex, Term


class Position(msgspec.Struct, frozen=True, array_like=True, order=True, gc=False):
    """The end of a log. Logs compare by epoch, then term, then index: the order of the fields."""

    epoch: int
    term: Term
    index: LogIndex


START: Final = Position(0, Term(0), LogIndex(0))
