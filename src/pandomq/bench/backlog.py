"""How far all publishers together may run ahead of all consumers.

A broker that accepts faster than it delivers would otherwise be measured with a growing queue, and by its memory.
"""

_UNBOUNDED = 1 << 62


class BacklogLimit:
    def __init__(self, messages_max: int, copies: int) -> None:
        self._messages_max = messages_max
        self._copies = copies
        self.published = 0
        self.delivered = 0

    @property
    def room(self) -> int:
        """Messages that may be published now."""
        if not self._messages_max:
            return _UNBOUNDED
        return self._messages_max - self.published + self.delivered // self._copies
