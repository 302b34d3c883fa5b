"""Limits the lines that a storm of events writes to the log.

A limited number of lines of each kind, which is the text before names and numbers are filled in, is written in a
second. Further ones are counted, and one line reports how many there were, and the last of them.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import Final

LINES_OF_A_KIND_MAX: Final = 100
"""Lines per second. An operator who logs in by hand, or watches a cluster start, sees all of them."""
WINDOW_S: Final = 1.0
KINDS_MAX: Final = 512
"""Kinds of lines that are distinguished; there are fewer, unless some code builds its lines by itself."""


class _Kind:
    __slots__ = ("began_s", "last", "left_out", "written")

    def __init__(self, began_s: float) -> None:
        self.began_s = began_s
        self.written = self.left_out = 0
        self.last: logging.LogRecord | None = None


class Repeats(logging.Filter):
    """A filter for a handler, to which it also adds the lines that report the others."""

    def __init__(self, handler: logging.Handler) -> None:
        super().__init__()
        self._handler = handler
        self._kinds: dict[str, _Kind] = {}
        self._lock = threading.Lock()

    def filter(self, record: logging.LogRecord) -> bool:
        if record.exc_info:
            return True
        with self._lock:
            key, now_s = str(record.msg), record.created
            kind = self._kinds.get(key)
            if kind is None or not 0 <= now_s - kind.began_s < WINDOW_S:
                self._end(key)
                if len(self._kinds) >= KINDS_MAX:
                    self._end_all()
                kind = self._kinds[key] = _Kind(now_s)
            if kind.written < LINES_OF_A_KIND_MAX:
                kind.written += 1
                return True
            kind.left_out += 1
            kind.last = record
            return False

    def sum_up(self, now_s: float) -> None:
        """To be called from time to time, for kinds that have stopped."""
        with self._lock:
            for key in [key for key, kind in self._kinds.items() if not 0 <= now_s - kind.began_s < WINDOW_S]:
                self._end(key)

    def _end_all(self) -> None:
        for key in list(self._kinds):
            self._end(key)

    def _end(self, key: str) -> None:
        kind = self._kinds.pop(key, None)
        if kind is None or kind.last is None:
            return
        last = kind.last
        text = f"and {kind.left_out} more within a second, the last one: {last.getMessage()}"
        told = logging.LogRecord(last.name, last.levelno, last.pathname, last.lineno, "%s", (text,), None)
        self._handler.acquire()
        try:
            self._handler.emit(told)
        finally:
            self._handler.release()


def sum_up() -> None:
    """Reports the lines that the handlers of this process have left out."""
    for handler in logging.getLogger().handlers:
        for one in handler.filters:
            if isinstance(one, Repeats):
                one.sum_up(time.time())
