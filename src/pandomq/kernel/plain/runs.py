"""Runs: consecutive inputs of one kind, as a scanner found them."""

from pandomq.kernel.plain.message import Message


class PublishRun:
    """Consecutive complete publishes: channel number, message, flags."""

    __slots__ = ("items",)

    def __init__(self) -> None:
        self.items: list[tuple[int, Message, int]] = []

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, position: int) -> tuple[int, Message, int]:
        return self.items[position]


class DeliveryRun:
    """Consecutive deliveries of another broker: channel number, consumer tag, delivery tag, redelivered, message."""

    __slots__ = ("items",)

    def __init__(self) -> None:
        self.items: list[tuple[int, bytes, int, bool, Message]] = []

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, position: int) -> tuple[int, bytes, int, bool, Message]:
        return self.items[position]


class SettleRun:
    """Consecutive settlements: channel number, method id, delivery tag, multiple, requeue."""

    __slots__ = ("items",)

    def __init__(self) -> None:
        self.items: list[tuple[int, int, int, bool, bool]] = []

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, position: int) -> tuple[int, int, int, bool, bool]:
        return self.items[position]
