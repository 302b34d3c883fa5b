"""The chain at regular points of the whole log, from its first entry on.

A bounded number of points is kept: when there are too many, every second one is removed. The points depend only on the
log, so brokers that hold the same log have the same points, and can compare any range between two of them although the
entries are reclaimed. Snapshots contain the points.
"""

from array import array

from pandomq.journal.checksums import CHAIN_START
from pandomq.journal.limits import CHAIN_POINTS_MAX, CHAIN_STRIDE_FIRST


class ChainPoints:
    __slots__ = ("stride", "values")

    def __init__(self, stride: int = CHAIN_STRIDE_FIRST, values: "array[int] | None" = None) -> None:
        assert stride & (stride - 1) == 0, "strides are powers of two, so that halving keeps multiples"
        self.stride = stride
        self.values: array[int] = array("Q") if values is None else values

    def record(self, index: int, chain: int) -> None:
        """Notes the chain after a multiple of the stride; to be called in order."""
        assert index == (len(self.values) + 1) * self.stride
        self.values.append(chain)
        if len(self.values) > CHAIN_POINTS_MAX:
            self.stride *= 2
            self.values = self.values[1::2]

    def cut(self, last_index: int) -> None:
        """The log now ends here."""
        del self.values[last_index // self.stride :]

    def up_to(self, last_index: int) -> "ChainPoints":
        return ChainPoints(self.stride, self.values[: last_index // self.stride])

    def at(self, index: int) -> int | None:
        if index == 0:
            return CHAIN_START
        place, rest = divmod(index, self.stride)
        if rest or place > len(self.values):
            return None
        return self.values[place - 1]

    def encode(self) -> bytes:
        return self.stride.to_bytes(8, "little") + self.values.tobytes()

    @staticmethod
    def decode(data: bytes) -> "ChainPoints":
        values = array("Q")
        values.frombytes(data[8:])
        return ChainPoints(int.from_bytes(data[:8], "little"), values)
