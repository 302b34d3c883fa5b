"""How far readers of a stream have come, as they said it, by name."""

from pandomq.errors import ChannelFault, precondition_failed
from pandomq.limits import SHORT_STRING_BYTES_MAX, STREAM_OFFSET_MAX, STREAM_STORED_OFFSETS_MAX


class StoredOffsets:
    """Names are kept until the stream goes. When there are too many, those of readers that retention has overtaken
    make room."""

    __slots__ = ("_rows",)

    def __init__(self) -> None:
        self._rows: dict[str, int] = {}

    def refusal(self, name: str, offset: int, first_offset: int) -> ChannelFault | None:
        """Why this cannot be stored."""
        if not 0 < len(name.encode("utf-8", "surrogatepass")) <= SHORT_STRING_BYTES_MAX:
            return precondition_failed(f"the name of a stored offset has 1 to {SHORT_STRING_BYTES_MAX} bytes")
        if not 0 <= offset <= STREAM_OFFSET_MAX:
            return precondition_failed(f"{offset} is not an offset")
        full = name not in self._rows and len(self._rows) >= STREAM_STORED_OFFSETS_MAX
        if full and not any(known < first_offset for known in self._rows.values()):
            return precondition_failed(f"the stream has offsets for {STREAM_STORED_OFFSETS_MAX} names")
        return None

    def store(self, name: str, offset: int, first_offset: int) -> None:
        if name not in self._rows and len(self._rows) >= STREAM_STORED_OFFSETS_MAX:
            self._rows = {known: at for known, at in self._rows.items() if at >= first_offset}
        self._rows[name] = offset

    def get(self, name: str) -> int | None:
        return self._rows.get(name)

    def copy(self) -> dict[str, int]:
        return dict(self._rows)
