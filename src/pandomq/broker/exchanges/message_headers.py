"""A message's headers as a mapping that decodes them on first use.

Most exchanges route by the key alone; decoding a field table costs more than such a routing.
"""

from collections.abc import ItemsView, Iterator, Mapping
from typing import TYPE_CHECKING, Any, overload

from pandomq.fieldtable import FieldTable
from pandomq.properties import read_headers, read_property

if TYPE_CHECKING:
    from pandomq.kernel import Message


class MessageHeaders(Mapping[str, Any]):
    """Raises ConnectionFault (502) when read if the message's properties are malformed (SPECIAL_MALFORMED)."""

    __slots__ = ("_message", "_table")

    def __init__(self, message: "Message") -> None:
        self._message = message
        self._table: FieldTable | None = None

    def table(self) -> FieldTable:
        if self._table is None:
            self._table = read_headers(self._message.header)
        return self._table

    def message_property(self, name: str) -> Any:
        """One of the message's properties (`Properties`), None if it is absent."""
        return read_property(self._message.header, name)

    def __getitem__(self, name: str) -> Any:
        return self.table()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.table())

    def __len__(self) -> int:
        return len(self.table())

    # The mixins of Mapping are correct but slow.

    def __contains__(self, name: object) -> bool:
        return name in self.table()

    def items(self) -> ItemsView[str, Any]:
        return self.table().items()

    @overload
    def get(self, key: str, /) -> Any | None: ...
    @overload
    def get(self, key: str, /, default: Any) -> Any: ...
    def get(self, key: str, /, default: Any = None) -> Any:
        return self.table().get(key, default)
